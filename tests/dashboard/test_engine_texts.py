"""Fixed texts of the engine are read in the reader's language; what others wrote stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.utils import translation

from dashboard.engine_texts import FIXED, engine_words, finding_words, who_words
from dashboard.event_words import kind_note
from dashboard.phrases import listed, sentences
from orchestration.contracts.plan import parse_plan
from orchestration.rules.plan_audit import audit_plan
from orchestration.states import AssignmentStatus, DecisionStatus, DefectStatus, TaskStatus

BASE = Path(__file__).resolve().parents[2]


def test_every_fixed_text_is_one_that_the_code_writes() -> None:
    own = {
        BASE / "dashboard" / name
        for name in ("engine_texts.py", "refusal_texts.py", "format_texts.py")
    }
    paths = [*(BASE / "orchestration").rglob("*.py"), *(BASE / "dashboard").rglob("*.py")]
    whole = "\n".join(path.read_text(encoding="utf-8") for path in paths if path not in own)
    joined = re.sub(r'"\s*\n\s*"', "", whole)
    assert [text for text in FIXED if f'"{text}"' not in joined] == []


@pytest.mark.parametrize(
    ("written", "english", "chinese"),
    [
        ("planning starts", "planning starts", "开始规划"),
        ("rejected by Sir: too slow", "rejected by Sir: too slow", "被 Sir 驳回：too slow"),
        ("the project is safe_stop", "the project stands at “Safe stop”", "项目处于“安全停止”"),
        ("executor failed three times", "the executor seat failed three times", "执行席位三次失败"),
        ("lease_expired (3 times)", "the lease ran out (3 times)", "租约到期（3 次）"),
        ("The name 'sir' is reserved.", "The name “sir” is reserved.", "名称 “sir” 为系统保留。"),
        ("the receiver answered 503", "the receiver answered 503", "接收方返回 503"),
        (
            "0 of 1 command succeeded; ls: failed",
            "0 of 1 command succeeded; ls: failed",
            "1 条命令中 0 条成功; ls: failed",
        ),
        ("2 of 2 commands succeeded", "2 of 2 commands succeeded", "2 条命令中 2 条成功"),
        (
            "1 attempts failed in a row. What now?",
            "1 attempt failed. What now?",
            "连续 1 次尝试失败。接下来怎么办？",
        ),
        (
            "May these 1 commands run on this machine?",
            "May this command run on this machine?",
            "这 1 条命令可以在本机运行吗？",
        ),
        (
            "1 step done, 0 skipped; every artifact is locked.",
            "1 step done, 0 skipped; every artifact is locked.",
            "完成 1 个步骤，跳过 0 个；所有产物均已锁定。",
        ),
        ("ls there: exit 2", "ls there: exit 2", "ls there：退出码 2"),
        ("low: do 1: exit 2", "Low: do 1: exit 2", "低：do 1：退出码 2"),
        (
            "The plan has one step, step 1: the task could be done directly.",
            "The plan has one step, step 1: the task could be done directly.",
            "计划只有一步（步骤 1）：该任务可以直接完成。",
        ),
        (
            "A command destroys something, but no risk is named: steps 1, 2 and 3 more.",
            "A command destroys something, but no risk is named: steps 1, 2 and 3 more.",
            "有命令会造成破坏，却没有写明风险：步骤 1, 2 等，另有 3 个。",
        ),
        (
            "Something is still wrong: event 4 was never sealed; seal broken",
            "Something is still wrong: event 4 was never sealed; seal broken",
            "状态仍然有误：事件 4 从未封存; seal broken",
        ),
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


def test_findings_of_a_real_audit_are_read_in_chinese() -> None:
    plan = parse_plan(
        {
            "steps": [
                {"id": "1", "action": "drop it", "run": ["rm -rf old"], "writes": ["a.txt"]},
                {"id": "2", "action": "write", "writes": ["a.txt"], "role": "Nobody"},
                {"id": "3", "action": "look", "risk_level": "high"},
            ]
        }
    )
    outcome = audit_plan(
        plan, policy_allow=(), known_roles=(), tools_available=lambda _tool: False, planner=""
    )
    with translation.override("zh-hans"):
        said = [engine_words(one.text) for one in outcome.findings]
    assert len(said) >= 5
    assert [text for text in said if not any("\u4e00" <= sign <= "\u9fff" for sign in text)] == []


def test_each_kind_of_event_has_words_in_chinese_only() -> None:
    kinds = [f"task.{state}" for state in TaskStatus]
    kinds += [f"decision.{state}" for state in ("opened", *DecisionStatus) if state != "open"]
    kinds += [f"assignment.{state}" for state in AssignmentStatus]
    kinds += [f"defect.{state}" for state in DefectStatus]
    with translation.override("zh-hans"):
        assert [kind for kind in kinds if not kind_note(kind)] == []
        assert kind_note("task.pending") == "任务 · 待开始"
        assert kind_note("task.unheard_of") == ""
    with translation.override("en"):
        assert kind_note("task.pending") == ""


def test_several_findings_are_read_one_by_one_and_other_words_stay() -> None:
    one = "The plan has one step, step 1: the task could be done directly."
    other = "A command destroys something, but no risk is named: step 1."
    with translation.override("zh-hans"):
        said = finding_words(f"{one} {other}")
        assert said == engine_words(one) + engine_words(other)
        assert finding_words("My own finding. It has two sentences.") == (
            "My own finding. It has two sentences."
        )
    with translation.override("en"):
        assert finding_words(f"{one} {other}") == f"{one} {other}"
