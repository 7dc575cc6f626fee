"""The words: every code has one, each fits its place, and Chinese is complete."""

from __future__ import annotations

import gettext
import re
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from dashboard.cards import expiry_text, verdict_views
from dashboard.clock import long_age, short_age
from dashboard.presenters import (
    assignment_label,
    decision_label,
    not_ready_words,
    plan_label,
    task_label,
)
from dashboard.verdicts import KINDS, VERDICT_LABELS
from dashboard.vocabulary import (
    ASSIGNMENT_LABELS,
    DECISION_LABELS,
    DEFECT_LABELS,
    LAYER_LOOKS,
    NOT_READY_WORDS,
    PLAN_LABELS,
    PROJECT_LABELS,
    SEVERITY_LABELS,
    TASK_LABELS,
)
from orchestration.contracts.options import RED_LINE_NO, options_for, verdicts_of
from orchestration.states import (
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    DefectStatus,
    LayerOutcome,
    NotReadyReason,
    PlanStatus,
    ProjectStatus,
    Severity,
    TaskStatus,
)
from orchestration.words import VERDICTS, consequence_text
from tests.dashboard.samples import NOW

LOCALE = Path(__file__).resolve().parents[2] / "locale/zh_Hans/LC_MESSAGES"
FULL: dict[str, Any] = {
    "round": 2, "rounds": 3, "step": "12b", "blocks": 14, "version": 2, "next_version": 3,
    "root": "PAY-112", "next_attempt": 2, "max_attempts": 3, "has_fix": True, "count": 16,
}  # fmt: skip
WIDEST_LATIN = 34
TABLES = (
    (TASK_LABELS, TaskStatus),
    (PROJECT_LABELS, ProjectStatus),
    (DEFECT_LABELS, DefectStatus),
    (DECISION_LABELS, DecisionStatus),
    (ASSIGNMENT_LABELS, AssignmentStatus),
    (PLAN_LABELS, PlanStatus),
    (SEVERITY_LABELS, Severity),
    (NOT_READY_WORDS, NotReadyReason),
    (KINDS, DecisionKind),
)


@pytest.mark.parametrize(("table", "codes"), TABLES)
def test_every_code_has_a_word(table: dict[Any, Any], codes: Any) -> None:
    assert set(table) == set(codes)


def test_every_layer_outcome_has_a_look() -> None:
    assert set(LAYER_LOOKS) == {*LayerOutcome, "not_reached"}


@pytest.mark.parametrize("kind", DecisionKind)
def test_every_verdict_of_a_kind_has_button_key_and_past_word(kind: DecisionKind) -> None:
    views = verdict_views(kind.value, options_for(kind, FULL))
    assert [view.verdict for view in views] == list(verdicts_of(kind))
    assert len({view.key for view in views}) == len(views)
    for view in views:
        assert view.text
        assert view.sign_text.startswith("Sign: ")
        assert view.verdict in VERDICT_LABELS


def test_the_keys_are_those_of_the_table() -> None:
    assert dict(KINDS[DecisionKind.MEDIUM_DEFECT].keys) == {
        "a": "approve",
        "c": "request_changes",
        "s": "accept_as_is",
        "r": "reject",
    }
    assert dict(KINDS[DecisionKind.PLAN_REJECTED].keys) == {
        "c": "guide",
        "r": "cancel",
        "s": "accept",
    }


@pytest.mark.parametrize("kind", [DecisionKind.MAX_RETRIES, DecisionKind.SAFE_STOP])
def test_letters_never_decide_a_stopped_project(kind: DecisionKind) -> None:
    keys = [view.key for view in verdict_views(kind.value, options_for(kind, FULL))]
    assert keys == [str(place) for place in range(1, len(keys) + 1)]


def width(text: str) -> float:
    """Width of a text, a Latin character counting one and a Chinese one two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


@pytest.mark.parametrize(
    ("kind", "language", "params"),
    list(
        product(
            DecisionKind,
            ("en", "zh-hans"),
            (
                FULL,
                {},
                {"about": "intent"},
                {"about": "negotiation"},
                *({**FULL, "about": about} for about in RED_LINE_NO),
            ),
        )
    ),
)
def test_consequences_are_at_most_three_and_fit_their_column(
    kind: DecisionKind, language: str, params: dict[str, Any]
) -> None:
    with translation.override(language):
        for option in options_for(kind, params):
            texts = [consequence_text(one["code"], one["params"]) for one in option["consequences"]]
            assert 1 <= len(texts) <= 3
            assert [text for text in texts if width(text) > WIDEST_LATIN] == []
            assert [text for text in texts if "%(" in text or "None" in text] == []


def test_a_medium_defect_without_a_fix_offers_to_have_it_fixed() -> None:
    views = verdict_views("medium_defect", options_for(DecisionKind.MEDIUM_DEFECT, {}))
    assert views[0].text == VERDICTS["medium_defect.have_it_fixed"]


def test_an_answer_is_not_sent_without_words() -> None:
    views = verdict_views("waiting_human", options_for(DecisionKind.WAITING_HUMAN, FULL))
    asks = {view.verdict: view.requires_reason for view in views}
    assert asks == {"answer": True, "approve": False, "reject": True, "abort": True}


def test_a_decided_item_shows_its_verdicts_own_word() -> None:
    assert decision_label("decided", "accept_as_is").word == "Accepted as is"
    assert decision_label("expired").word == "Expired"


def test_words_that_depend_on_more_than_the_status() -> None:
    assert task_label("cancelled", "skipped").word == "Skipped"
    assert task_label("cancelled", "superseded").word == "Cancelled"
    assert assignment_label("queued", has_filler=False).word == "Waiting for an agent"
    assert plan_label("approved", is_override=True).word == "Audit overridden"


def test_why_a_task_is_not_ready_names_what_is_missing_where_known() -> None:
    assert not_ready_words("dependencies", {"keys": "2a and 2b"}) == "needs 2a and 2b"
    assert not_ready_words("dependencies") == "needs earlier steps"
    assert not_ready_words("suspended") == "project suspended"


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [(0, "0 s", "0 s"), (59, "59 s", "59 s"), (720, "12 min", "12 min"),
     (11040, "3 h", "3 h 04 min"), (90_000, "1 d", "1 d 1 h")],
)  # fmt: skip
def test_ages(seconds: int, short: str, long: str) -> None:
    assert (short_age(seconds), long_age(seconds)) == (short, long)


def test_silence_is_told_and_never_consents() -> None:
    assert expiry_text(None, None) == "No expiry. Silence changes nothing."
    assert "Silence changes nothing" in expiry_text(NOW, None)


def po_entries() -> list[tuple[str, str]]:
    """Each message of the Chinese catalogue, with its plural form, and its translation."""
    blocks = (LOCALE / "django.po").read_text(encoding="utf-8").split("\n\n")[1:]
    entries = []
    for block in blocks:
        message = re.search(r'^msgid "(.*)"', block, re.MULTILINE)
        text = re.search(r'^msgstr(?:\[0\])? "(.*)"', block, re.MULTILINE)
        assert message is not None
        assert text is not None
        plural = re.search(r'^msgid_plural "(.*)"', block, re.MULTILINE)
        whole = message.group(1) + (plural.group(1) if plural is not None else "")
        entries.append((whole, text.group(1)))
    return entries


def test_every_message_has_a_chinese_text_with_the_same_parameters() -> None:
    for message, text in po_entries():
        assert text, message
        assert set(re.findall(r"%\(\w+\)\d*[a-z]|{\w+}", text)) <= set(
            re.findall(r"%\(\w+\)\d*[a-z]|{\w+}", message)
        )


def test_the_compiled_catalogue_is_the_written_one() -> None:
    with (LOCALE / "django.mo").open("rb") as compiled:
        catalogue = gettext.GNUTranslations(compiled)
    known = {str(text) for text in catalogue._catalog.values()}  # type: ignore[attr-defined]
    written = [re.sub(r'\\(["\\])', r"\1", text) for _message, text in po_entries()]
    missing = [text for text in written if text not in known]
    assert missing == []


@pytest.mark.parametrize(
    ("status", "word"),
    [("waiting_human", "等你处理"), ("review", "验收中"), ("fatal", "致命失败"), ("done", "完成")],
)
def test_statuses_read_as_the_design_says_in_chinese(status: str, word: str) -> None:
    with translation.override("zh-hans"):
        assert task_label(status).word == word
