"""The prompt of each of the twelve profiles, in both languages, byte for byte.

`COUNTERSIGN_WRITE_GOLDEN=1 python -m pytest tests/prompts/test_profiles.py` writes the files anew;
read the difference before you commit it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.rules.profiles import PROFILES
from orchestration.rules.prompt_layers import write_prompt
from orchestration.rules.prompt_text import Layer
from orchestration.selectors.prompt_facts import read_prompt_facts
from orchestration.states import Seat
from tests.factories import agent_step, new_project, submit_plan

GOLDEN = Path(__file__).parent / "golden_profiles"
LANGUAGES = ("en", "zh-hans")
DUTIES = {
    "en": ("Understand first", "architecture", "smallest change", "style", "Comment only"),
    "zh-hans": ("先理解", "架构", "最小改动", "写法", "注释"),
}


def role_layer(language: str, name: str) -> Layer:
    """The first layer that an executor of a profile is told; TaskCheck sits in QA's seat."""
    project = new_project("demo")
    project.language = language
    project.save()
    root = submit_plan(project, agent_step("1", role=name))
    root.role, root.step_key = name, ""
    seat = Seat.QA if name == "TaskCheck" else Seat.EXECUTOR
    facts = read_prompt_facts(root, seat, None, base_url="http://countersign.test", agent=None)
    if name == "TaskCheck":
        facts = replace(facts, task=replace(facts.task, judge=name))
    return next(one for one in write_prompt(facts).layers if one.key == "L2a")


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PROFILES)
def test_profile_is_told_the_golden_words(name: str, language: str) -> None:
    layer = role_layer(language, name)
    path = GOLDEN / f"{name}.{language}.md"
    if os.environ.get("COUNTERSIGN_WRITE_GOLDEN") == "1":
        path.write_text(layer.text + "\n", encoding="utf-8")
    assert layer.text + "\n" == path.read_text(encoding="utf-8")
    assert not layer.is_cut
    assert name in layer.text


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
def test_subcoding_is_told_its_five_duties(language: str) -> None:
    text = role_layer(language, "SubCoding").text
    assert all(duty in text for duty in DUTIES[language])


def test_every_profile_has_a_golden_file_in_each_language_and_no_other_is_there() -> None:
    wanted = {f"{name}.{language}.md" for name in PROFILES for language in LANGUAGES}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
