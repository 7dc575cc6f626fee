"""What checks say of work, in the reader's language: why one could not run, and what it found.

Rows keep the English that the engine wrote; words of agents and commands in it stay as they are.
Source: DESIGN section 8 ("Layers", "Independent verification"), section 15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.phrases import listed

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

FIXED: Mapping[str, str | StrPromise] = {
    "not possible: this project has no workspace": _("not possible: this project has no workspace"),
    "not possible: no sandbox for code that agents wrote": _(
        "not possible: no sandbox for code that agents wrote"
    ),
    "not possible: no independent agent is connected for a cross-check": _(
        "not possible: no independent agent is connected for a cross-check"
    ),
    "not possible: not on the project's list of allowed commands": _(
        "not possible: not on the project’s list of allowed commands"
    ),
    "our run does not tell how many tests it ran": _("our run does not tell how many tests it ran"),
    "nothing here says how to build": _("nothing here says how to build"),
    "nothing here says how to test": _("nothing here says how to test"),
    "nothing to re-run": _("nothing to run again"),
    "there is no output": _("there is no output"),
}
_LAYER = re.compile(r"(L[1-5]): (.+)", re.DOTALL)
PATTERNS: tuple[tuple[re.Pattern[str], str | StrPromise], ...] = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"not possible: not approved: (?P<command>.+)",
         _("not possible: not approved: %(command)s")),
        (r"(?P<n>\d+) claims name a command of their agent's own; (?P<why>.+)",
         ngettext_lazy("%(n)s claim names a command of its agent’s own; %(why)s",
                       "%(n)s claims name a command of their agent’s own; %(why)s", "n")),
        (r"(?P<path>.+) is outside of the workspace", _("%(path)s is outside of the workspace")),
        (r"(?P<tool>.+) or a part of it is not installed here",
         _("%(tool)s or a part of it is not installed here")),
        (r"(?P<command>.+) found no test", _("%(command)s found no test")),
        (r"(?P<command>.+) lacks something of this machine",
         _("%(command)s lacks something of this machine")),
        (r"(?P<command>.+): timed_out", _("%(command)s: its time ran out")),
        (r"there is no (?P<path>.+) in the workspace", _("there is no %(path)s in the workspace")),
        (r"the text has no note (?P<name>.+)", _("the text has no note %(name)s")),
        (r"(?P<path>.+) was handed in", _("%(path)s was handed in")),
        (r"(?P<path>.+) is a folder", _("%(path)s is a folder")),
        (r"(?P<path>.+) exists, (?P<n>\d+) bytes",
         ngettext_lazy("%(path)s exists, %(n)s byte", "%(path)s exists, %(n)s bytes", "n")),
        (r"(?P<passed>\d+) passed, (?P<failed>\d+) failed, as claimed",
         _("%(passed)s passed, %(failed)s failed, as claimed")),
        (r"claimed (?P<said>\d+) passed, (?P<bad>\d+) failed; "
         r"ran (?P<passed>\d+) passed, (?P<failed>\d+) failed",
         _("claimed %(said)s passed, %(bad)s failed; ran %(passed)s passed, %(failed)s failed")),
        (r"(?P<now>\d+) tests ran, (?P<before>\d+) in an earlier run of the same command",
         _("%(now)s tests ran, %(before)s in an earlier run of the same command")),
        (r"expected artifact is missing or empty: (?P<path>.+)",
         _("expected artifact is missing or empty: %(path)s")),
        (r"changed after it was handed in: (?P<path>.+)",
         _("changed after it was handed in: %(path)s")),
    )
)  # fmt: skip

FIGURES: Mapping[str, str | StrPromise] = {
    "turns": _("turns %(used)s of %(limit)s"),
    "cost_usd": _("cost %(used)s of %(limit)s USD"),
}


def check_words(text: str) -> str:
    """Say a finding of a layer in the reader's language; what we do not know stays as it is."""
    layer = _LAYER.fullmatch(text)
    if layer is not None:
        return gettext("%(layer)s: %(finding)s") % {
            "layer": layer[1], "finding": check_words(layer[2]),
        }  # fmt: skip
    if text in FIXED:
        return str(FIXED[text])
    for pattern, words in PATTERNS:
        found = pattern.fullmatch(text)
        if found is not None:
            held = found.groupdict()
            parts: dict[str, object] = {
                name: check_words(one) if name == "why" else one for name, one in held.items()
            }
            if held.get("n", "").isdecimal():
                parts["n"] = int(held["n"])  # it chooses the plural
            return str(words % parts)
    return text


def over_budget_words(exceeded: Mapping[str, Mapping[str, Any]]) -> str:
    """Say which figures are over their limits."""
    return listed(
        [
            str(FIGURES[name]) % {"used": f"{one['used']:g}", "limit": f"{one['limit']:g}"}
            for name, one in exceeded.items()
            if name in FIGURES
        ]
    )
