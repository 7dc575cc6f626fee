"""The verdict dock and the closed card, built from a decision and the words of its codes.

Source: UI.md sections 5.1, 5.2 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from django.utils import timezone
from django.utils.translation import get_language, gettext

from dashboard.clock import clock_text
from dashboard.shapes import ClosedCard, Dock, DockField, Verdict
from dashboard.verdicts import (
    DIALOG_TITLES,
    DIGITS_ONLY,
    FINAL_SENTENCE,
    KINDS,
    LEFT_OUT_OF_DIALOG,
    REASON_HINTS,
    SHORT_BUTTONS,
    VERDICT_LABELS,
    consequence_sentence,
)
from orchestration.states import DecisionKind
from orchestration.words import choose_text, consequence_text, verdict_text

IS_TEXT = frozenset({"answer"})
"""Verdicts that are their text: the engine asks no reason of them, the form asks the words."""


class ShownDecision(Protocol):
    """What the dock reads of a decision, whether a row or a typed copy of one."""

    @property
    def kind(self) -> str:
        """A `DecisionKind`."""

    @property
    def version(self) -> int:
        """The version shown."""

    @property
    def digest(self) -> str:
        """The digest of what is signed."""

    @property
    def options(self) -> Sequence[Mapping[str, Any]]:
        """Rows of `contracts.options.Option`."""

    @property
    def deadline(self) -> datetime | None:
        """When it expires, if ever."""

    @property
    def on_expiry(self) -> Mapping[str, Any] | None:
        """The policy that holds then, if one is named."""


def verdict_views(kind: str, options: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """The dock's columns in the order of the card; the first clean yes is the solid button."""
    keys = {verdict: key for key, verdict in KINDS[DecisionKind(kind)].keys.items()}
    offered = [str(option["verdict"]) for option in options]
    if "answer" not in offered and "approve" in offered:
        keys.setdefault("approve", "a")
    return [
        _verdict(option, keys.get(verdict, str(place)), is_primary=place == 1)
        for place, (verdict, option) in enumerate(zip(offered, options, strict=True), start=1)
    ]


def _verdict(option: Mapping[str, Any], key: str, *, is_primary: bool) -> Verdict:
    code, params = option["label"]["code"], option["label"]["params"]
    text = verdict_text(code, params)
    consequences = option["consequences"]
    sentences = [
        _sentence(consequence_sentence(item["code"], item["params"]))
        for item in consequences
        if item["code"] not in LEFT_OUT_OF_DIALOG
    ]
    title = choose_text(DIALOG_TITLES[code], params) if code in DIALOG_TITLES else text
    return Verdict(
        verdict=option["verdict"],
        text=text,
        short_text=str(SHORT_BUTTONS[option["verdict"]]),
        sign_text=gettext("Sign: %(verdict)s") % {"verdict": text[:1].lower() + text[1:]},
        dialog_title=title,
        key=key,
        consequences=[consequence_text(item["code"], item["params"]) for item in consequences],
        sentences=[*sentences, str(FINAL_SENTENCE)],
        requires_reason=bool(option["requires_reason"]) or option["verdict"] in IS_TEXT,
        is_destructive=bool(option["destructive"]),
        is_primary=is_primary and not option["destructive"],
        reason_hint=REASON_HINTS.get(code, ""),
    )


def _sentence(text: str) -> str:
    if text.endswith((".", "。", "?", "？")):
        return text
    return text + ("。" if (get_language() or "").startswith("zh") else ".")


def expiry_text(deadline: datetime | None, on_expiry: Mapping[str, Any] | None) -> str:
    """What silence does. Only a named policy can do anything, and the line says which and when."""
    if deadline is None:
        return gettext("No expiry. Silence changes nothing.")
    when = clock_text(deadline)
    outcome = (on_expiry or {}).get("outcome") or (on_expiry or {}).get("verdict")
    if not outcome:
        return gettext("At %(time)s a reminder follows. Silence changes nothing.") % {"time": when}
    words = VERDICT_LABELS[outcome].word if outcome in VERDICT_LABELS else outcome
    return gettext("At %(time)s, policy %(policy)s: %(outcome)s.") % {
        "time": when,
        "policy": (on_expiry or {}).get("policy_id", ""),
        "outcome": words,
    }


def _left(deadline: datetime | None) -> int | None:
    """Milliseconds until a deadline; None without one, and once it has passed."""
    if deadline is None:
        return None
    left = int((deadline - timezone.now()).total_seconds() * 1000)
    return left if left > 0 else None


def make_dock(
    decision: ShownDecision,
    *,
    id: str,
    action: str,
    draft: str = "",
    draft_url: str = "",
    pause_url: str = "",
    error: str = "",
    blocked_reason: str = "",
    fields: Sequence[DockField] = (),
    fragment_url: str = "",
) -> Dock:
    """Build the dock of an open decision. `blocked_reason` disables a clean yes and says why."""
    verdicts = verdict_views(decision.kind, decision.options)
    free = [verdict.short_text for verdict in verdicts if not verdict.requires_reason]
    return Dock(
        id=id,
        action=action,
        version=decision.version,
        digest=decision.digest,
        verdicts=verdicts,
        expiry=expiry_text(decision.deadline, decision.on_expiry),
        expires_in=_left(decision.deadline),
        placeholder=_placeholder(len(verdicts), free),
        draft=draft,
        draft_url=draft_url,
        pause_url=pause_url,
        error=error,
        blocked_reason=blocked_reason,
        fields=fields,
        fragment_url=fragment_url,
        is_choice=decision.kind == DecisionKind.MAX_RETRIES,
    )


def _placeholder(count: int, free: Sequence[str]) -> str:
    if len(free) == count:
        return gettext("Reason or remark, if you like; the agent reads it.")
    if not free:
        return gettext("Reason or instructions. Required; the agent reads it.")
    return gettext(
        "Reason or instructions. Required for everything but %(free)s; the agent reads it."
    ) % {"free": free[0]}


def may_bulk(kind: str) -> bool:
    """Whether rows of a kind have a tick box."""
    return DecisionKind(kind) not in DIGITS_ONLY


def closed_card(
    *,
    id: str,
    verdict: str,
    who: str,
    at: datetime,
    reason: str,
    version: int,
    digest: str,
    outcome: str = "",
    next_url: str = "",
    is_refused: bool = False,
) -> ClosedCard:
    """The verdict that stands, with who and when. `outcome` is what the list's row says."""
    label = VERDICT_LABELS[verdict]
    headline = gettext("%(verdict)s by %(who)s, %(time)s") % {
        "verdict": label.word,
        "who": who,
        "time": clock_text(at, seconds=True),
    }
    return ClosedCard(
        id, "signature", headline, reason, version, digest, outcome, next_url, is_refused
    )
