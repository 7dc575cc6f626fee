"""Templates: one of each in both languages, filled completely, without a list of steps."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from orchestration.rules.prompt_templates import FOLDER, template
from orchestration.rules.prompt_words import CHINESE, ENGLISH, WORDS, prompt_language
from orchestration.states import Seat

LANGUAGES = (ENGLISH, CHINESE)
NAMES = sorted(path.stem for path in (FOLDER / ENGLISH).glob("*.md"))
STEPS = re.compile(r"(?:^|\n)#+ *(?:\d+[.、]|step \d|步骤)|第[一二三]步|\bstep 1\b", re.IGNORECASE)


def test_both_languages_have_the_same_templates_with_the_same_places() -> None:
    assert {path.stem for path in (FOLDER / CHINESE).glob("*.md")} == set(NAMES)
    for name in NAMES:
        found = [set(template(language, name).get_identifiers()) for language in LANGUAGES]
        assert found[0] == found[1], name


def test_both_languages_have_the_same_words_with_the_same_places() -> None:
    assert set(WORDS[ENGLISH]) == set(WORDS[CHINESE])
    for key, text in WORDS[ENGLISH].items():
        assert _places(text) == _places(WORDS[CHINESE][key]), key


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seat", Seat)
def test_role_tells_goal_abilities_and_freedom_but_no_steps(seat: Seat, language: str) -> None:
    text = template(language, seat.value).template
    assert not STEPS.search(text)
    assert "POST ${assignment}/result" in text
    if seat is Seat.SCORER:
        return
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert len(headings) >= 4
    assert "|---|---|---|" in text


@pytest.mark.parametrize(
    ("language", "wanted"),
    [("en", ENGLISH), ("zh-hans", CHINESE), ("zh-CN", CHINESE), ("de", ENGLISH)],
)
def test_prompt_speaks_the_language_of_the_project(language: str, wanted: str) -> None:
    assert prompt_language(language) == wanted
