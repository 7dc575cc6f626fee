"""What the audit by rules finds in a plan, and results of our commands, in the reader's language.

Shape: patterns for `engine_texts`; `steps` is what `step_names` says in words.
Source: rules/plan_audit.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

STEPS = r"(?P<steps>steps? .+?)"
_STEPS = re.compile(r"steps? (?P<keys>.+?)(?: and (?P<more>\d+) more)?")

FINDING_PATTERNS: Sequence[tuple[str, str | StrPromise]] = (
    (
        rf"No expected artifact, verify or run command in {STEPS}: only what is handed in can be "
        r"checked\.",
        _(
            "No expected artifact, verify or run command in %(steps)s: only what is handed in can "
            "be checked."
        ),
    ),
    (
        rf"Nothing can check {STEPS}, and the risk is high: name expected artifacts or a verify "
        r"command\.",
        _(
            "Nothing can check %(steps)s, and the risk is high: name expected artifacts or a "
            "verify command."
        ),
    ),
    (
        rf"The same work seems to be planned more than once: {STEPS}\.",
        _("The same work seems to be planned more than once: %(steps)s."),
    ),
    (
        rf"Nothing orders {STEPS}, and both write '(?P<path>[^']+)': add a dependency\.",
        _("Nothing orders %(steps)s, and both write “%(path)s”: add a dependency."),
    ),
    (
        rf"More than (?P<n>\d+) hand-overs in a row without a merge end in {STEPS}; every hop adds "
        r"drift, so join neighbouring steps\.",
        _(
            "More than %(n)s hand-overs in a row without a merge end in %(steps)s; every hop adds "
            "drift, so join neighbouring steps."
        ),
    ),
    (
        rf"The plan has one step, {STEPS}: the task could be done directly\.",
        _("The plan has one step, %(steps)s: the task could be done directly."),
    ),
    (
        rf"All that the task says stands in {STEPS}: a child is smaller than its task\.",
        _("All that the task says stands in %(steps)s: a child is smaller than its task."),
    ),
    (
        rf"A command destroys something, but no risk is named: {STEPS}\.",
        _("A command destroys something, but no risk is named: %(steps)s."),
    ),
    (
        rf"The patch of the proposed fix cannot be shown, so nobody can approve it: {STEPS}\.",
        _("The patch of the proposed fix cannot be shown, so nobody can approve it: %(steps)s."),
    ),
    (
        rf"Role '(?P<name>[^']+)' is unknown: {STEPS}\.",
        _("Role “%(name)s” is unknown: %(steps)s."),
    ),
    (
        rf"Commands outside the allow-list will be asked for once, before they run: {STEPS}\.",
        _("Commands outside the allow-list will be asked for once, before they run: %(steps)s."),
    ),
    (
        rf"'(?P<name>[^']+)' was not found on this machine; it is needed by {STEPS}\.",
        _("“%(name)s” was not found on this machine; it is needed by %(steps)s."),
    ),
    (
        rf"The estimate is not more than nothing: {STEPS}\.",
        _("The estimate is not more than nothing: %(steps)s."),
    ),
    (
        rf"The estimate is over 30 days: {STEPS}; split the work\.",
        _("The estimate is over 30 days: %(steps)s; split the work."),
    ),
    (
        rf"The longest way through the plan takes over 30 days and ends in {STEPS}\.",
        _("The longest way through the plan takes over 30 days and ends in %(steps)s."),
    ),
    (
        r"(?P<severity>low|medium|high|critical): (?P<why>.+: exit \d+)",
        _("%(severity)s: %(why)s"),
    ),
    (r"(?P<said>.+): exit (?P<code>\d+)", _("%(said)s: exit %(code)s")),
)


def step_names(said: str) -> str:
    """Say "steps 1, 2 and 3 more" in the reader's language."""
    found = _STEPS.fullmatch(said)
    if found is None:
        return said
    if found["more"]:
        return gettext("steps %(keys)s and %(n)s more") % {
            "keys": found["keys"], "n": found["more"],
        }  # fmt: skip
    words = gettext("steps %(keys)s") if said.startswith("steps ") else gettext("step %(keys)s")
    return words % {"keys": found["keys"]}
