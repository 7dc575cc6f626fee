"""Refusals that services say in English, for the page in the reader's language.

Shape: as the tables of `engine_texts`, which reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from orchestration.workflows.playbook import BESIDE_IT, NO_DIRECTORY

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REFUSED: Mapping[str, str | StrPromise] = {
    NO_DIRECTORY: _(
        "{playbook_dir} names no directory in an upload. Write the full path on the server, or a "
        "path inside the workspace."
    ),
    BESIDE_IT: _(
        "The playbook names files beside it, and an upload brings none. Change the steps below, or "
        "run it on the server: manage.py run_playbook FILE --project SLUG"
    ),
    "An agent's name is 1 to 120 letters, digits, '-', '_', '.' or '@'.": _(
        "An agent’s name is 1 to 120 letters, digits, “-”, “_”, “.” or “@”."
    ),
    "The scopes are not valid.": _("The scopes are not valid."),
    "needs at least one": _("needs at least one"),
    "this agent got another token meanwhile": _("this agent got another token meanwhile"),
    "Nobody reviews their own words.": _("Nobody reviews their own words."),
    "there are too many channels; remove one first": _(
        "there are too many channels; remove one first"
    ),
    "the kind of a channel stays what it is": _("the kind of a channel stays what it is"),
    "the channel needs a name of at most 80 characters": _(
        "the channel needs a name of at most 80 characters"
    ),
    "is required, at most 80 characters": _("is required, at most 80 characters"),
    "the time zone is unknown": _("the time zone is unknown"),
    "is not the name of a time zone": _("is not the name of a time zone"),
    "the channel is off": _("the channel is off"),
    "this delivery cannot be tried again": _("this delivery cannot be tried again"),
    "only webhooks sign": _("only webhooks sign"),
    "This task has no locked blueprint to deviate from.": _(
        "This task has no locked blueprint to deviate from."
    ),
    "the planner handed in a plan again that was rejected before, unchanged": _(
        "the planner handed in a plan again that was rejected before, unchanged"
    ),
    "The file holds neither a playbook nor a master task list.": _(
        "The file holds neither a playbook nor a master task list."
    ),
    "must be an object": _("must be an object"),
    "is required": _("is required"),
}

REFUSED_PATTERNS: Sequence[tuple[str, str | StrPromise]] = (
    (r"The name '(?P<name>[^']+)' is reserved\.", _("The name “%(name)s” is reserved.")),
    (
        r"there is an agent '(?P<name>[^']+)' already",
        _("there is an agent named “%(name)s” already"),
    ),
    (r"'(?P<name>[^']+)' is not a name of a page\.?", _("“%(name)s” is not a name of a page")),
    (r"the page '(?P<name>[^']+)' was just written", _("the page “%(name)s” was just written")),
    (
        r"seen version (?P<seen>\d+), stored (?P<stored>\d+)",
        _("it changed meanwhile: you saw version %(seen)s, version %(stored)s is there"),
    ),
    (r"(?P<name>\S+) is not a valid playbook\.", _("%(name)s is not a valid playbook.")),
    (r"(?P<name>\S+) would not pass its audit\.", _("%(name)s would not pass its audit.")),
    (r"(?P<name>\S+) has no title", _("%(name)s has no title")),
    (
        r"(?P<name>\S+) must hold a title and steps, as `title:` and `steps:`",
        _("%(name)s must hold a title and steps, as `title:` and `steps:`"),
    ),
    (r"the text is larger than (?P<n>\d+) bytes", _("the text is larger than %(n)s bytes")),
    (
        r"the project is (?P<project_state>\w+); it takes no new work",
        _("the project stands at “%(project_state)s”; it takes no new work"),
    ),
    (r"Something is wrong: (?P<why>.+)", _("Something is wrong: %(why)s")),
    (r"Something is still wrong: (?P<why>.+)", _("Something is still wrong: %(why)s")),
    (
        r"Sir refused this red line before: (?P<why>.+)",
        _("Sir refused this red line before: %(why)s"),
    ),
)

DELIVERY_PATTERNS: Sequence[tuple[str, str | StrPromise]] = (
    (r"the receiver answered (?P<n>\d+)", _("the receiver answered %(n)s")),
    (r"no answer: (?P<said>.+)", _("no answer: %(said)s")),
    (r"TLS failed: (?P<said>.+)", _("TLS failed: %(said)s")),
    (r"the address (?:was|is) refused: (?P<why>.+)", _("the address is refused: %(why)s")),
    (
        r"the mail server did not take it: (?P<said>.+)",
        _("the mail server did not take it: %(said)s"),
    ),
)

STOP_PATTERNS: Sequence[tuple[str, str | StrPromise]] = (
    (
        r"关键状态丢失，无法继续执行。 Critical state is lost; the work cannot go on\.",
        _("Key state is lost; the project cannot go on."),
    ),
    (
        r"task (?P<key>\d+) depends on task (?P<other>\d+): a task that is not there",
        _("task %(key)s depends on task %(other)s, which is not there"),
    ),
    (
        r"task (?P<key>\d+) depends on task (?P<other>\d+): another project's",
        _("task %(key)s depends on task %(other)s of another project"),
    ),
    (r"tasks depend on each other: (?P<way>.+)", _("tasks depend on each other: %(way)s")),
    (
        r"tasks stand below each other: (?P<way>.+)",
        _("tasks stand below each other: %(way)s"),
    ),
    (
        r"(?P<row>\w+:\d+) has no legal state: (?P<state>.*)",
        _("%(row)s has no legal state: %(state)s"),
    ),
    (
        r"(?P<row>\w+:\d+) is (?P<state>\w+); its history left it (?P<other>\w+)",
        _("%(row)s stands at %(state)s; its history left it at %(other)s"),
    ),
    (
        r"(?P<row>\w+:\d+) is (?P<state>\w+); no event of it is there",
        _("%(row)s stands at %(state)s; no event of it is there"),
    ),
    (
        r"(?P<row>decision:\d+) says (?P<state>\w+); (?P<other>\w+) was decided",
        _("%(row)s says %(state)s; %(other)s was decided"),
    ),
    (
        r"event (?P<n>\d+) at position (?P<place>\d+) is not what was sealed",
        _("event %(n)s at position %(place)s is not what was sealed"),
    ),
    (
        r"the link before position (?P<place>\d+) is broken",
        _("the link before position %(place)s is broken"),
    ),
    (r"event (?P<n>\d+) was never sealed", _("event %(n)s was never sealed")),
    (r"blueprint (?P<n>\d+) is not what was locked", _("blueprint %(n)s is not what was locked")),
    (
        r"artifact (?P<n>\d+) \((?P<name>.+)\) is not what was locked",
        _("artifact %(n)s (%(name)s) is not what was locked"),
    ),
)
