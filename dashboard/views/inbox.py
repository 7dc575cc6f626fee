"""Sir's inbox: the list with its reading pane, the history, and the fragments a hint refetches."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from dashboard.choices import Choice, kind_choices, project_choices, verdict_choices
from dashboard.decision_cards import Card, dock_of, make_card
from dashboard.forms import history_filter, inbox_filter, read_number
from dashboard.http import DashboardRequest, actor_of, is_fragment, may_decide, page
from dashboard.inbox_rows import (
    KEY_HELP,
    LIST_KEYS,
    history_line,
    make_groups,
    make_row,
    took_words,
)
from dashboard.places import address, with_query
from dashboard.shapes import Crumb, Dock
from orchestration.models import Decision
from orchestration.selectors.activity import newest_position
from orchestration.selectors.inbox import (
    InboxItem,
    count_blocked,
    list_deciders,
    list_history,
    list_open,
    open_count,
    read_day,
    read_decision,
    read_view,
    with_cards,
)
from orchestration.selectors.overview import list_projects
from orchestration.services.decisions import is_overdue, mark_seen, settle_overdue
from orchestration.states import DecisionStatus

LIST_PAGE = 100
PAGE = "dashboard/inbox/list.html"


@page
@require_safe
def inbox(request: DashboardRequest) -> HttpResponse:
    """The list and the pane of the chosen item, or only the list for a refresh."""
    position = newest_position()
    wanted = inbox_filter(request.GET)
    items = list_open(user_id=request.user.pk, wanted=wanted)
    number = max(read_number(request.GET, "page") or 1, 1)
    shown = with_cards(items[(number - 1) * LIST_PAGE : number * LIST_PAGE])
    current = _current(shown, read_number(request.GET, "item"))
    query = {
        "kind": wanted.kind, "project": wanted.project, "q": wanted.text,
        "blocks": "1" if wanted.blocks_only else "",
    }  # fmt: skip
    url = address("inbox")
    context: dict[str, Any] = {
        "groups": make_groups(shown, current=current.decision.pk if current else None),
        "list_url": with_query(url, query | {"page": number if number > 1 else ""}),
        "next_url": _next_page(url, query, number, len(items)),
        "shown": len(shown),
        "total": len(items),
        "wanted": wanted,
    }
    if is_fragment(request):
        return render(request, f"{PAGE}#rows", context)
    context |= {
        "crumbs": [Crumb(_("Inbox"))],
        "tab": "open",
        "open_count": len(items) if wanted.is_empty else open_count(),
        "position": position,
        "changes_url": address("changes"),
        "kinds": kind_choices(url, query),
        "projects": project_choices(url, query),
        "blocks_url": with_query(url, query | {"blocks": "" if wanted.blocks_only else "1"}),
        "keys": LIST_KEYS,
        "key_groups": KEY_HELP,
    }
    context |= pane_context(request, current, place=_place(items, current)) if current else {}
    if current is None:
        context |= _empty_context(request)
    return render(request, PAGE, context)


def _next_page(url: str, query: dict[str, str], number: int, total: int) -> str:
    return with_query(url, query | {"page": number + 1}) if total > number * LIST_PAGE else ""


def _current(items: list[InboxItem], wanted: int | None) -> InboxItem | None:
    """The item that the pane shows: the wanted one, else the first."""
    chosen = next((one for one in items if one.decision.pk == wanted), None)
    return chosen or (items[0] if items else None)


def _place(items: list[InboxItem], current: InboxItem | None) -> str:
    """Where the item stands in the list: `2 of 9`."""
    if current is None:
        return ""
    return f"{[one.decision.pk for one in items].index(current.decision.pk) + 1}/{len(items)}"


def settled_decision(request: DashboardRequest, pk: int) -> Decision:
    """Read a decision as it stands: one whose deadline has passed is its policy's by now.

    Errors: NotFound.
    """
    found = read_decision(request.user, pk)
    if request.method == "GET" and is_overdue(found) and settle_overdue(pk):
        return read_decision(request.user, pk)
    return found


def pane_context(request: DashboardRequest, item: InboxItem, *, place: str) -> dict[str, Any]:
    """What the pane's templates take."""
    decision = read_decision(request.user, item.decision.pk)
    card = make_card(decision, blocks=item.blocks, is_page=False)
    number, _slash, whole = place.partition("/")
    return {
        "card": card,
        "dock": reader_dock(request, card, blocks=item.blocks),
        "may_decide": may_decide(request),
        "number": number,
        "whole": whole,
    }


def reader_dock(
    request: DashboardRequest, card: Card, *, blocks: int, error: str = "", draft: str | None = None
) -> Dock | None:
    """The dock for this reader, with the text they had typed."""
    if draft is None:
        view = read_view(card.decision.pk, request.user.pk)
        draft = view.draft if view is not None else ""
    is_sir = may_decide(request)
    return dock_of(card, draft=draft, error=error, may_decide=is_sir, blocks=blocks)


def _empty_context(request: DashboardRequest) -> dict[str, Any]:
    day = read_day(request.user.pk)
    rows = [row for row in list_projects() if row.health in ("moving", "waiting_for_agent")]
    return {
        "is_clear": open_count() == 0,
        "day": day,
        "median": took_words(day.median_took) if day.median_took is not None else "",
        "running": rows[:8],
    }


@page
@require_safe
def inbox_history(request: DashboardRequest) -> HttpResponse:
    """Closed decisions: verdict, item, reason, by whom and how fast."""
    wanted = history_filter(request.GET)
    items, cursor = list_history(wanted, before=read_number(request.GET, "before"))
    url = address("inbox_history")
    query = {
        "verdict": wanted.verdict, "kind": wanted.kind, "project": wanted.project,
        "by": wanted.by, "q": wanted.text,
    }  # fmt: skip
    by_links = [
        Choice(name, with_query(url, query | {"by": name}), is_current=name == wanted.by)
        for name in list_deciders()
    ]
    context = {
        "crumbs": [Crumb(_("Inbox"))],
        "tab": "history",
        "open_count": open_count(),
        "lines": [history_line(item) for item in items],
        "older_url": with_query(url, query | {"before": cursor}) if cursor else "",
        "wanted": wanted,
        "query": query,
        "verdicts": verdict_choices(url, query),
        "kinds": kind_choices(url, query),
        "projects": project_choices(url, query),
        "deciders": by_links,
        "clear_url": url if any(query.values()) else "",
        "position": newest_position(),
        "changes_url": address("changes"),
        "key_groups": KEY_HELP,
    }
    return render(request, "dashboard/inbox/history.html", context)


@page
@require_GET
def inbox_count(request: HttpRequest) -> HttpResponse:
    """The number in the navigation, refetched on each hint of the inbox."""
    context = {"count": open_count(), "fragment_url": address("inbox_count")}
    return render(request, "dashboard/_parts/inbox_count.html", context)


@page
@require_GET
def inbox_clear(request: DashboardRequest) -> HttpResponse:
    """What the pane shows once the last item of the list has left."""
    return render(request, "dashboard/inbox/all_clear.html", _empty_context(request))


@page
@require_GET
def decision_row(request: DashboardRequest, pk: int) -> HttpResponse:
    """One row of the list; a decision that is closed has none."""
    decision = settled_decision(request, pk)
    if decision.status != DecisionStatus.OPEN:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    row = make_row(_item(request, decision))
    return render(request, "dashboard/_parts/inbox_row.html", {"row": row})


@page
@require_GET
def decision_pane(request: DashboardRequest, pk: int) -> HttpResponse:
    """The card of one item for the reading pane."""
    found = settled_decision(request, pk)
    items = list_open(user_id=request.user.pk)
    current = next((one for one in items if one.decision.pk == pk), None)
    item = current or _item(request, found)
    context = pane_context(request, item, place=_place(items, current))
    return render(request, "dashboard/inbox/pane.html", context)


def _item(request: DashboardRequest, decision: Decision) -> InboxItem:
    view = read_view(decision.pk, request.user.pk)
    is_unseen = view is None or view.seen_at is None
    return InboxItem(decision, count_blocked([decision])[decision.pk], is_unseen)


@page
@require_POST
def decision_seen(request: DashboardRequest, pk: int) -> HttpResponse:
    """Note that this reader looked at an item; it decides nothing."""
    read_decision(request.user, pk)
    mark_seen(decision_id=pk, user_id=request.user.pk, actor=actor_of(request))
    return HttpResponse(status=HTTPStatus.NO_CONTENT)
