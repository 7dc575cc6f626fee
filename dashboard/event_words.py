"""Kinds of audit events in words: the code `task.pending` stays, a reader's own words stand below.

Source: UI.md section 5.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import get_language, pgettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

NOUNS: Mapping[str, str | StrPromise] = {
    "account": pgettext_lazy("event", "account"),
    "agent": pgettext_lazy("event", "agent"),
    "archive": pgettext_lazy("event", "archive"),
    "artifact": pgettext_lazy("event", "artifact"),
    "assessment": pgettext_lazy("event", "assessment"),
    "assignment": pgettext_lazy("event", "assignment"),
    "blueprint": pgettext_lazy("event", "blueprint"),
    "channel": pgettext_lazy("event", "channel"),
    "comment": pgettext_lazy("event", "comment"),
    "consumer": pgettext_lazy("event", "consumer"),
    "decision": pgettext_lazy("event", "decision"),
    "defect": pgettext_lazy("event", "defect"),
    "deviation": pgettext_lazy("event", "deviation"),
    "document": pgettext_lazy("event", "document"),
    "experience": pgettext_lazy("event", "experience"),
    "fix": pgettext_lazy("event", "fix"),
    "handshake": pgettext_lazy("event", "handshake"),
    "human_token": pgettext_lazy("event", "personal token"),
    "loop": pgettext_lazy("event", "loop"),
    "mail": pgettext_lazy("event", "mail"),
    "notification": pgettext_lazy("event", "notification"),
    "output": pgettext_lazy("event", "output"),
    "permission": pgettext_lazy("event", "permission"),
    "plan": pgettext_lazy("event", "plan"),
    "project": pgettext_lazy("event", "project"),
    "prompt": pgettext_lazy("event", "prompt"),
    "result": pgettext_lazy("event", "result"),
    "review": pgettext_lazy("event", "review"),
    "shared_document": pgettext_lazy("event", "shared document"),
    "task": pgettext_lazy("event", "task"),
    "validation": pgettext_lazy("event", "validation"),
    "wiki": pgettext_lazy("event", "wiki page"),
    "workflow": pgettext_lazy("event", "workflow"),
}
PASTS: Mapping[str, str | StrPromise] = {
    "accepted": pgettext_lazy("event", "accepted"),
    "accepted_as_is": pgettext_lazy("event", "accepted as is"),
    "active": pgettext_lazy("event", "active"),
    "added": pgettext_lazy("event", "added"),
    "approved": pgettext_lazy("event", "approved"),
    "archived": pgettext_lazy("event", "archived"),
    "audited": pgettext_lazy("event", "audited"),
    "auditing": pgettext_lazy("event", "in audit"),
    "awaiting_sir": pgettext_lazy("event", "waits for Sir"),
    "blocked": pgettext_lazy("event", "blocked"),
    "cancelled": pgettext_lazy("event", "cancelled"),
    "changed": pgettext_lazy("event", "changed"),
    "claimed": pgettext_lazy("event", "claimed"),
    "commanded": pgettext_lazy("event", "commanded"),
    "completed": pgettext_lazy("event", "completed"),
    "confirmed": pgettext_lazy("event", "confirmed"),
    "confirmed_with_correction": pgettext_lazy("event", "confirmed with a correction"),
    "contradicted": pgettext_lazy("event", "contradicted"),
    "created": pgettext_lazy("event", "created"),
    "decided": pgettext_lazy("event", "decided"),
    "disabled": pgettext_lazy("event", "switched off"),
    "done": pgettext_lazy("event", "done"),
    "drafted": pgettext_lazy("event", "drafted"),
    "enabled": pgettext_lazy("event", "switched on"),
    "expired": pgettext_lazy("event", "expired"),
    "fail": pgettext_lazy("event", "not passed"),
    "failed": pgettext_lazy("event", "failed"),
    "fatal": pgettext_lazy("event", "fatal"),
    "fix_approved": pgettext_lazy("event", "fix approved"),
    "fixed": pgettext_lazy("event", "fixed"),
    "fixing": pgettext_lazy("event", "being fixed"),
    "general": pgettext_lazy("event", "general"),
    "handoff": pgettext_lazy("event", "hand-off"),
    "held": pgettext_lazy("event", "held"),
    "imported": pgettext_lazy("event", "imported"),
    "leased": pgettext_lazy("event", "leased"),
    "locked": pgettext_lazy("event", "locked"),
    "needs_revision": pgettext_lazy("event", "needs revision"),
    "observation": pgettext_lazy("event", "observation"),
    "open": pgettext_lazy("event", "open"),
    "opened": pgettext_lazy("event", "opened"),
    "over_budget": pgettext_lazy("event", "over budget"),
    "packaged": pgettext_lazy("event", "packaged"),
    "pass": pgettext_lazy("event", "passed"),
    "pending": pgettext_lazy("event", "pending"),
    "policy_changed": pgettext_lazy("event", "policy changed"),
    "progress": pgettext_lazy("event", "progress"),
    "queued": pgettext_lazy("event", "queued"),
    "read": pgettext_lazy("event", "read"),
    "recorded": pgettext_lazy("event", "recorded"),
    "refused": pgettext_lazy("event", "refused"),
    "rejected": pgettext_lazy("event", "rejected"),
    "released": pgettext_lazy("event", "released"),
    "reminded": pgettext_lazy("event", "reminded"),
    "removed": pgettext_lazy("event", "removed"),
    "replaced": pgettext_lazy("event", "replaced"),
    "reproposing": pgettext_lazy("event", "another fix asked for"),
    "resumed": pgettext_lazy("event", "resumed"),
    "retried": pgettext_lazy("event", "retried"),
    "review": pgettext_lazy("event", "in review"),
    "revoked": pgettext_lazy("event", "revoked"),
    "rotated": pgettext_lazy("event", "rotated"),
    "s0": "S0",
    "s1": "S1",
    "safe_stop": pgettext_lazy("event", "safe stop"),
    "sent": pgettext_lazy("event", "sent"),
    "stale": pgettext_lazy("event", "stale"),
    "started": pgettext_lazy("event", "started"),
    "superseded": pgettext_lazy("event", "superseded"),
    "suspended": pgettext_lazy("event", "suspended"),
    "test": pgettext_lazy("event", "test"),
    "tested": pgettext_lazy("event", "tested"),
    "ticked": pgettext_lazy("event", "ticked"),
    "unneeded": pgettext_lazy("event", "not needed"),
    "unwritten": pgettext_lazy("event", "not written"),
    "verified": pgettext_lazy("event", "verified"),
    "void": pgettext_lazy("event", "void"),
    "waiting_human": pgettext_lazy("event", "waits for Sir"),
    "warned": pgettext_lazy("event", "warned"),
    "withdrawn": pgettext_lazy("event", "withdrawn"),
    "working": pgettext_lazy("event", "working"),
    "written": pgettext_lazy("event", "written"),
}


def noun_word(noun: str) -> str:
    """The word of what an event is about; one that nothing names stays its code."""
    return str(NOUNS.get(noun, noun))


def kind_note(kind: str) -> str:
    """A kind in the reader's words; nothing in English, whose words the code has already."""
    noun, _dot, past = kind.partition(".")
    if (get_language() or "en").startswith("en") or noun not in NOUNS or past not in PASTS:
        return ""
    return f"{NOUNS[noun]} · {PASTS[past]}"
