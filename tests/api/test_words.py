"""Every code that a decision may carry has words, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from orchestration.contracts.options import options_for
from orchestration.states import DecisionKind
from orchestration.words import CONSEQUENCES, VERDICTS, choose_text, consequence_text, verdict_text

FULL: dict[str, Any] = {
    "has_fix": True, "round": 1, "rounds": 3, "step": "2a", "blocks": 4, "count": 2, "frees": 1,
    "root": "DEMO-1", "next_attempt": 2, "max_attempts": 3, "version": 1, "next_version": 2,
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("params", [{}, {"has_fix": True}, FULL], ids=["none", "fix", "full"])
@pytest.mark.parametrize("kind", DecisionKind)
def test_each_option_has_words(kind: DecisionKind, params: dict[str, Any], language: str) -> None:
    with translation.override(language):
        for option in options_for(kind, params):
            texts = [verdict_text(option["label"]["code"], option["label"]["params"])]
            texts += [
                consequence_text(one["code"], one["params"]) for one in option["consequences"]
            ]
            assert all(text and "%(" not in text for text in texts)


def test_parameters_choose_the_fuller_text() -> None:
    assert consequence_text("frees_now", {"frees": 3}) == "Frees 3 tasks now"
    assert consequence_text("frees_now", {"blocks": 1}) == "Frees 1 task now"
    assert consequence_text("frees_now", {"blocks": 0}) == "Nothing waits for it"
    assert consequence_text("locks_on_pass", {"frees": 0}) == "On pass: locks the result"
    assert consequence_text("frees_now", {"frees": ""}) == "Frees what waits now"
    assert verdict_text("command_approval.approve", {"count": 2}) == "Approve the 2 commands"


def test_parameters_are_never_formats_themselves() -> None:
    assert consequence_text("step_fails", {"step": "%(root)s 100%"}).startswith("%(root)s 100%")


def test_unknown_code_is_an_error_and_not_a_gap() -> None:
    with pytest.raises(KeyError):
        verdict_text("medium_defect.forget", {})
    with pytest.raises(KeyError):
        consequence_text("world_ends", {})
    with pytest.raises(LookupError):
        choose_text([(("needed",), "%(needed)s")], {})
    assert all(texts[-1][0] == () for texts in CONSEQUENCES.values())
    assert VERDICTS
