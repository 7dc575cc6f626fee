"""Fixed texts of the engine are read in the reader's language; what others wrote stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import translation

from dashboard.engine_texts import FIXED, engine_words, who_words
from dashboard.phrases import listed, sentences

BASE = Path(__file__).resolve().parents[2]


def test_every_fixed_text_is_one_that_the_code_writes() -> None:
    own = BASE / "dashboard/engine_texts.py"
    paths = [*(BASE / "orchestration").rglob("*.py"), *(BASE / "dashboard").rglob("*.py")]
    whole = "\n".join(path.read_text(encoding="utf-8") for path in paths if path != own)
    assert [text for text in FIXED if f'"{text}"' not in whole] == []


@pytest.mark.parametrize(
    ("written", "english", "chinese"),
    [
        ("planning starts", "planning starts", "开始规划"),
        ("rejected by Sir: too slow", "rejected by Sir: too slow", "被 Sir 驳回：too slow"),
        ("the project is safe_stop", "the project stands at “Safe stop”", "项目处于“安全停止”"),
        ("executor failed three times", "the executor seat failed three times", "执行席位三次失败"),
        ("lease_expired (3 times)", "the lease ran out (3 times)", "租约到期（3 次）"),
        ("an agent's own words: 5%", "an agent's own words: 5%", "an agent's own words: 5%"),
    ],
)
def test_words_of_the_engine(written: str, english: str, chinese: str) -> None:
    with translation.override("en"):
        assert engine_words(written) == english
    with translation.override("zh-hans"):
        assert engine_words(written) == chinese


def test_who_acted_is_said_in_words_and_a_name_stays() -> None:
    with translation.override("zh-hans"):
        assert who_words("qa rules") == who_words("rules qa") == "质检（规则）"
        assert who_words("helper") == "helper"


def test_lists_and_sentences_follow_the_language() -> None:
    with translation.override("en"):
        assert (listed(["a", "", "b"]), sentences(["One.", "Two."])) == ("a, b", "One. Two.")
    with translation.override("zh-hans"):
        assert (listed(["a", "b"]), sentences(["一。", "二。"])) == ("a、b", "一。二。")
