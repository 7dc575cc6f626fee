"""Words of what is sent to people: subject lines, bodies and the day's digest, in both languages.

Titles come from outside and may be hostile: they are one plain line, without control characters,
and no mail or chat program makes a link, a mention or a format of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from orchestration.contracts.notices import NoticeEvent

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

TITLE_CHARACTERS = 140
MARKUP = str.maketrans(
    {
        "<": "＜", ">": "＞", "[": "［", "]": "］", "(": "（", ")": "）", "*": "＊", "_": "＿",
        "`": "ˋ", "~": "～", "|": "｜", "#": "＃", "@": "＠", "!": "！", "&": "＆", "\\": "＼",
    }
)  # fmt: skip
"""Characters that chat programs read as format, links or mentions, and the look-alike of each."""

KINDS: Mapping[str, StrPromise] = MappingProxyType(
    {
        "medium_defect": _("A defect needs your verdict"),
        "waiting_human": _("An agent waits for your answer"),
        "max_retries": _("A task failed too often; the project stands still"),
        "plan_rejected": _("A plan did not pass its audit"),
        "clarification": _("An understanding needs your confirmation"),
        "command_approval": _("Commands need your approval"),
        "budget_exceeded": _("A limit of cost or turns is used up"),
        "final_review": _("A result needs your final review"),
        "safe_stop": _("The project stopped for safety"),
        "high_notice": _("A High defect was fixed by rule"),
    }
)
EVENTS: Mapping[str, StrPromise] = MappingProxyType(
    {
        NoticeEvent.OPENED.value: _("waits for you"),
        NoticeEvent.REMINDER.value: _("still waits for you"),
        NoticeEvent.DEADLINE.value: _("its deadline is near"),
        NoticeEvent.DECIDED.value: _("was decided"),
        NoticeEvent.EXPIRED.value: _("was decided by policy, because nobody answered"),
        NoticeEvent.WITHDRAWN.value: _("no longer waits: it was withdrawn"),
    }
)


@dataclass(frozen=True, slots=True)
class Message:
    """What a person reads. Shape: `subject` is one line; `text` is plain.

    `topic` is the subject without what happened, the same for everything about one item.
    """

    subject: str
    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The facts of one item, as plain values. `verdict` and `decided_by` are empty while open."""

    kind: str
    event: str
    is_p0: bool
    project: str
    key: str
    title: str
    url: str
    created_at: datetime
    deadline: datetime | None
    policy_id: str
    outcome: str
    verdict: str
    decided_by: str


def plain_line(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Make one line of somebody's text: no control or direction characters, no address to click."""
    kept = "".join(
        " " if unicodedata.category(one) in ("Cc", "Zl", "Zp") else one
        for one in text
        if unicodedata.category(one) not in ("Cf", "Cs", "Co", "Cn")
    )
    line = " ".join(kept.split()).replace("://", ":\u2044\u2044").replace("www.", "www\u2024")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def quiet_line(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Make one line that a chat program shows as it stands: no format, no mention, no link."""
    return plain_line(text, limit).translate(MARKUP)


Line = Callable[..., str]
"""How somebody's text becomes one line: plain for mail, quiet for chat programs."""


def _moment(at: datetime) -> str:
    return f"{date_format(at, 'Y-m-d H:i')} {at.tzname() or ''}".rstrip()


def notice_message(told: Told, line: Line = quiet_line) -> Message:
    """Say what happened to one item. The reader's language and time zone are set by the caller."""
    word = str(EVENTS[told.event])
    mark = "P0 · " if told.is_p0 else ""
    title = line(told.title)
    place = " ".join(filter(None, (line(told.project, 60), told.key)))
    topic = f"[Countersign] {mark}{place}: {title}"
    subject = f"{topic} – {word}"
    lines = [f"{mark}{KINDS[told.kind]}.", "", f"{place}: {title}", word, ""]
    lines.append(gettext("Waiting since %(time)s.") % {"time": _moment(told.created_at)})
    if told.verdict or told.decided_by:
        lines.append(
            gettext("Verdict: %(verdict)s, by %(who)s.")
            % {"verdict": told.verdict, "who": line(told.decided_by, 80)}
        )
    elif told.deadline is not None and told.policy_id:
        lines.append(
            gettext("Deadline %(time)s; then policy %(policy)s: %(outcome)s.")
            % {
                "time": _moment(told.deadline),
                "policy": line(told.policy_id),
                "outcome": line(told.outcome),
            }
        )
    else:
        lines.append(gettext("No expiry. Silence changes nothing."))
    lines += ["", told.url, gettext("The link shows the item. Opening it decides nothing.")]
    return Message(subject, "\n".join(lines), topic)


def test_message(name: str, url: str) -> Message:
    """Say that a channel works."""
    subject = gettext("[Countersign] A test of %(name)s") % {"name": quiet_line(name)}
    text = gettext("This channel works. What waits for you will be told here.")
    return Message(subject, f"{text}\n\n{url}")


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One item of the digest. `note` is what is said beside it."""

    place: str
    title: str
    note: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """One day: what waits (oldest first, and how many in all), what policies decided, failures."""

    day: str
    waiting: Sequence[DigestLine]
    waiting_count: int
    by_policy: Sequence[DigestLine]
    failures: Sequence[DigestLine]
    url: str

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.waiting_count or self.by_policy or self.failures)


def digest_message(digest: Digest, line: Line = plain_line) -> Message:
    """Write the day's digest."""
    count = digest.waiting_count
    waits = ngettext("%(n)s item waits for you", "%(n)s items wait for you", count) % {"n": count}
    subject = f"[Countersign] {digest.day}: {waits}"
    lines = [waits + ("," if count else "."), ""]
    if count:
        lines[0] = gettext("%(waits)s, the oldest first:") % {"waits": waits}
        lines += _listed(digest.waiting, line)
        if count > len(digest.waiting):
            lines.append(gettext("… and %(n)s more") % {"n": count - len(digest.waiting)})
        lines.append("")
    if digest.by_policy:
        lines += [gettext("Decided by policy, because nobody answered:"), ""]
        lines += [*_listed(digest.by_policy, line), ""]
    if digest.failures:
        lines += [gettext("Failed:"), "", *_listed(digest.failures, line), ""]
    lines += [digest.url, gettext("The links show the items. Opening them decides nothing.")]
    return Message(subject, "\n".join(lines))


def _listed(rows: Sequence[DigestLine], line: Line) -> list[str]:
    listed = []
    for row in rows:
        place = line(row.place, 60)
        note = f" ({line(row.note, 80)})" if row.note.strip() else ""
        listed.append(f"- {place}: {line(row.title)}{note}")
        if row.url:
            listed.append(f"  {row.url}")
    return listed
