"""The overview: what waits, every project by need, what was decided without Sir, this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.clock import short_age
from dashboard.feeds import feed_lines
from dashboard.http import DashboardRequest, is_fragment, page
from dashboard.phrases import sentences
from dashboard.places import address, decision_url
from dashboard.projects_table import project_lines
from dashboard.shapes import Crumb
from orchestration.seats.sandboxing import sandbox_report
from orchestration.selectors.activity import newest_position
from orchestration.selectors.inbox import has_decided, list_open
from orchestration.selectors.overview import (
    ProjectRow,
    count_agents,
    decided_without_sir,
    list_projects,
    notable_events,
    oldest_open_at,
    stopped_projects,
)
from orchestration.services.health import canary_age_seconds

PAGE = "dashboard/overview/page.html"
FEED_LINES = 6
LOOKED = "overview_looked"
TOUR = "tour"
"""The cookie that static/js/tour.js sets when the tour is over."""
WORKER_LATE_SECONDS = 60.0


@page
@require_safe
def overview(request: DashboardRequest) -> HttpResponse:
    """The whole page, or only its lead and table for a refresh."""
    position = newest_position()
    rows = list_projects()
    context = _lead_context(request, rows)
    if is_fragment(request):
        return render(request, f"{PAGE}#lead", context)
    context |= {
        "crumbs": [Crumb(_("Overview"))],
        "project_slug": "*",
        "position": position,
        "changes_url": address("changes"),
        "without": decided_without_sir(),
        "machine": machine_facts(),
        "is_first_run": _is_first_run(rows),
    }
    context["has_tour"] = context["is_first_run"] and _wants_tour(request)
    context |= _feed_context(request, position)
    return render(request, PAGE, context)


def _lead_context(request: DashboardRequest, rows: Sequence[ProjectRow]) -> dict[str, Any]:
    items = list_open(user_id=request.user.pk)
    behind = sum(item.blocks for item in items)
    return {
        "lines": project_lines(rows),
        "lead": lead_words(len(items)),
        "detail": _detail_words(rows, behind, is_one=len(items) == 1),
        "open_count": len(items),
        "only_url": decision_url(items[0].decision) if len(items) == 1 else "",
    }


def lead_words(count: int) -> str:
    """The one sentence of the page."""
    if not count:
        return gettext("Nothing needs you")
    words = ngettext("One decision waits for you", "%(n)s decisions wait for you", count)
    return words % {"n": count}


def _detail_words(rows: Sequence[ProjectRow], behind: int, *, is_one: bool) -> str:
    parts = []
    oldest = oldest_open_at(rows)
    if oldest is not None:
        age = short_age((timezone.now() - oldest).total_seconds())
        said = (
            gettext("It has waited %(age)s.") if is_one else gettext("The oldest is %(age)s old.")
        )
        parts.append(said % {"age": age})
    stopped = len(stopped_projects(rows))
    if stopped:
        words = ngettext("One project has stopped.", "%(n)s projects have stopped.", stopped)
        parts.append(words % {"n": stopped})
    if behind:
        words = ngettext("%(n)s task waits behind them.", "%(n)s tasks wait behind them.", behind)
        if is_one:
            words = ngettext("%(n)s task waits behind it.", "%(n)s tasks wait behind it.", behind)
        parts.append(words % {"n": behind})
    running = sum(row.health == "moving" for row in rows)
    if not parts and running:
        words = ngettext("%(n)s project is moving.", "%(n)s projects are moving.", running)
        parts.append(words % {"n": running})
    return sentences(parts) or gettext("Work goes on by itself until it has a question.")


def _is_first_run(rows: Sequence[ProjectRow]) -> bool:
    """Whether this is a fresh installation: at most the demo, and nothing else was made yet."""
    return len(rows) <= 1 and all(row.project.slug == "demo" for row in rows)


def _wants_tour(request: DashboardRequest) -> bool:
    """Whether the tour is still due: gone for good once it was skipped or a verdict was given."""
    return request.COOKIES.get(TOUR) != "done" and not has_decided(request.user.pk)


def _feed_context(request: DashboardRequest, position: int) -> dict[str, Any]:
    """What happened since this reader last looked; the mark moves on with each full look."""
    kept = request.session.get(LOOKED, {})
    since = int(kept.get("position", 0))
    looked_at = parse_datetime(str(kept.get("at", "")))
    events, total = notable_events(after=since, limit=FEED_LINES)
    if not events:
        # Nothing new: the last things that happened say more than an empty list.
        events, _rest = notable_events(after=0, limit=FEED_LINES)
        total = 0
    if request.method == "GET":
        request.session[LOOKED] = {"position": position, "at": timezone.now().isoformat()}
    return {
        "feed": feed_lines(events),
        "feed_since": looked_at if total else None,
        "feed_more": max(total - len(events), 0),
    }


@dataclass(frozen=True, slots=True)
class MachineFact:
    """One line about this installation. `is_good` is None where it is neither good nor bad."""

    word: str
    text: str
    icon: str
    is_good: bool | None


def machine_facts() -> list[MachineFact]:
    """Worker, sandbox, agents and seal of this installation. Costs a few queries."""
    age = canary_age_seconds()
    is_heard = age is not None and age <= WORKER_LATE_SECONDS
    if age is None:
        words = gettext("has not answered yet")
    else:
        words = gettext("answered %(age)s ago") % {"age": short_age(age)}
    known, seen = count_agents()
    agents = gettext("none connected yet") if not known else ""
    if known:
        agents = gettext("%(n)s of %(all)s seen in 15 min") % {"n": seen, "all": known}
    position = newest_position()
    return [
        MachineFact(gettext("Worker"), words, "circle-check" if is_heard else "circle-x", is_heard),
        _sandbox_fact(),
        MachineFact(gettext("Agents"), agents, "robot", None),
        MachineFact(gettext("Audit seal"), f"#{position:,}", "shield-check", None),
    ]


def _sandbox_fact() -> MachineFact:
    """Say which sandbox holds here, or how to get one."""
    report = sandbox_report()
    title = gettext("Sandbox")
    if report.is_switched_off:
        words = gettext("off by the operator: agents’ code runs unprotected")
        return MachineFact(title, words, "circle-x", is_good=False)
    if report.sandbox is None:
        words = gettext("none: agents’ code is not run; install bubblewrap to get one")
        return MachineFact(title, words, "circle-minus", None)
    names = {
        "bubblewrap": gettext(
            "bubblewrap: agents’ code cannot see the data directory or the network"
        ),
        "uid": gettext("a separate user"),
        "landlock": gettext("Landlock"),
    }
    return MachineFact(title, names[report.sandbox.kind], "circle-check", is_good=True)
