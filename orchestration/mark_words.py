"""Words of marks, by their codes, in the reader's language; the brackets are part of a mark.

Source: DESIGN section 8 ("Marks"), source document 003.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from orchestration.rules.tool_record import (
    AGENT_VERIFIED,
    BY,
    INDEPENDENT_FAILED,
    INDEPENDENT_OK,
    NOT_VERIFIED,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

KINDS: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        INDEPENDENT_OK: _("independently verified ✓"),
        INDEPENDENT_FAILED: _("independently verified ✗"),
        AGENT_VERIFIED: _("agent verified"),
        NOT_VERIFIED: _("not verified"),
    }
)
CODES: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        "build_passed": _("builds (exit 0)"),
        "tests_passed": _("tests pass (exit 0)"),
        "lint_passed": _("lint is clean (exit 0)"),
        "run_passed": _("runs (exit 0)"),
        "command_failed": _("command failed (exit %(exit_code)s): %(command)s"),
        "command_interrupted": _("command interrupted: %(command)s"),
        "command_passed": _("passed: %(command)s"),
        "check_failed": _("failed: %(command)s"),
        "file_exists": _("file exists: %(path)s"),
        "file_missing": _("file is missing or empty: %(path)s"),
        "claim_contradicted": _("contradicted: %(claim)s"),
        "claim_failed": _("contradicted: %(claim)s (exit %(exit_code)s)"),
        "count_contradicted": _("contradicted: %(claim)s (%(passed)s passed, %(failed)s failed)"),
        "claim_builds": _("builds"),
        "claim_tests": _("tests pass"),
        "claim_counted": _("tests: %(passed)s passed, %(failed)s failed"),
        "own_tests": _("code and its tests were changed by the same hand: %(paths)s"),
        "fewer_tests": _("%(now)s tests ran, %(before)s in an earlier run of the same command"),
        "unchecked_no_workspace": _("not checked: %(claim)s (this project has no workspace)"),
        "unchecked_no_sandbox": _("not checked: %(claim)s (no sandbox for code that agents wrote)"),
        "unchecked_outside": _("not checked: %(claim)s (outside of the workspace)"),
        "unchecked_unreadable": _("not checked: %(claim)s (it cannot be read)"),
        "unchecked_no_way": _("not checked: %(claim)s (nothing here says how)"),
        "unchecked_tool_missing": _("not checked: %(claim)s (%(tool)s is not installed here)"),
        "unchecked_not_finished": _("not checked: %(claim)s (%(command)s did not finish)"),
        "unchecked_no_tests": _("not checked: %(claim)s (%(command)s found no test)"),
        "unchecked_environment": _(
            "not checked: %(claim)s (this machine lacks something it needs)"
        ),
        "unchecked_no_counts": _(
            "not checked: %(claim)s (our run does not tell how many tests it ran)"
        ),
        "reasoning_only": _("this rests on reasoning; no verifying command was run"),
    }
)


def mark_text(mark: Mapping[str, Any]) -> str:
    """Say what a mark stands on; one without a code that we know says its own text."""
    known = CODES.get(str(mark.get("code", "")))
    if known is None:
        return str(mark.get("text", ""))
    try:
        return str(str(known) % mark.get("params", {}))
    except (KeyError, TypeError, ValueError):
        return str(mark.get("text", ""))


def mark_kind(kind: str, by: str = "") -> str:
    """The kind of a mark in brackets, with whose it is where another agent earned it."""
    word = KINDS.get(kind, kind)
    if not by:
        return f"[{word}]"
    return "[" + gettext("%(word)s: %(name)s") % {"word": word, "name": by} + "]"


def mark_document(mark: Mapping[str, Any]) -> dict[str, Any]:
    """A stored mark with its words beside it: `label` in brackets, `text` in this language."""
    label = mark_kind(str(mark.get("kind", "")), str(mark.get(BY) or ""))
    return {**mark, "label": label, "text": mark_text(mark)}


def mark_lines(marks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write marks as the lines that stand below a reply: one a kind, what it stands on listed."""
    by_kind: dict[tuple[str, str], list[str]] = {}
    for one in marks:
        key = (str(one.get("kind", "")), str(one.get(BY) or ""))
        by_kind.setdefault(key, []).append(mark_text(one))
    between = gettext(", ")
    return [f"{mark_kind(*key)} {between.join(texts)}" for key, texts in by_kind.items()]
