"""Several decisions of one kind at once: each is signed by itself and has its own result.

Source: DESIGN section 9 ("Bulk"), UI.md section 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from dashboard.cards import may_bulk
from dashboard.decision_cards import Card, dock_of, make_card
from dashboard.forms import SentVerdict, read_verdict
from dashboard.http import DashboardRequest, actor_of, see_other, sir_only
from dashboard.inbox_rows import row_title
from dashboard.outcomes import outcome_words
from dashboard.places import address, decision_url
from dashboard.shapes import Crumb, Dock
from dashboard.views.decisions import refusal_words
from orchestration.access import visible_decisions
from orchestration.errors import CountersignError, Invalid
from orchestration.models import Decision
from orchestration.selectors.activity import newest_position
from orchestration.selectors.inbox import count_blocked, read_decision
from orchestration.services.decisions import Verdict, decide_decision
from orchestration.states import DecisionStatus

MAX_ITEMS = 50
PAGE = "dashboard/inbox/bulk.html"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of one item."""

    title: str
    url: str
    words: str
    is_signed: bool
    is_withdrawn: bool = False


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def bulk(request: DashboardRequest) -> HttpResponse:
    """Show the chosen items, each expanded; a POST signs each of them by itself."""
    if request.method == "POST":
        return _decide_each(request)
    rows = _open(_chosen(request, request.GET))
    if not rows:
        return see_other(address("inbox"))
    if len(rows) == 1:
        return see_other(decision_url(rows[0]))
    return render(request, PAGE, _context(request, rows))


def _chosen(request: DashboardRequest, query: QueryDict) -> list[Decision]:
    """The chosen items of the first one's kind, in the order they were chosen, open or not."""
    ids = [int(one) for one in query.getlist("selected") if one.isdigit() and len(one) < 16]
    known = visible_decisions(request.user).filter(pk__in=ids[:MAX_ITEMS])
    found = {row.pk: row for row in known}
    rows = [found[pk] for pk in dict.fromkeys(ids) if pk in found]
    return [row for row in rows if row.kind == rows[0].kind and may_bulk(row.kind)]


def _open(rows: Sequence[Decision]) -> list[Decision]:
    return [row for row in rows if row.status == DecisionStatus.OPEN]


def _context(
    request: DashboardRequest, rows: Sequence[Decision], *, error: str = ""
) -> dict[str, object]:
    decisions = [read_decision(request.user, row.pk) for row in rows]
    blocks = count_blocked(decisions)
    cards = [make_card(one, blocks=blocks[one.pk], is_page=False) for one in decisions]
    n = len(cards)
    title = ngettext("%(n)s item of one kind", "%(n)s items of one kind", n) % {"n": n}
    return {
        "cards": cards,
        "dock": _shared_dock(cards),
        "error": error,
        "title": title,
        "kind_word": cards[0].kind_word,
        "crumbs": [Crumb(_("Inbox"), address("inbox")), Crumb(title)],
        "position": newest_position(),
        "changes_url": address("changes"),
    }


def _shared_dock(cards: Sequence[Card]) -> Dock | None:
    """The verdicts of the kind; what cannot be shown whole blocks a clean yes for all."""
    return dock_of(next((card for card in cards if card.problem), cards[0]))


def _decide_each(request: DashboardRequest) -> HttpResponse:
    # One that was closed meanwhile is among them: its result says who closed it.
    rows = _chosen(request, request.POST)
    if not rows:
        return see_other(address("inbox"))
    options = {one["verdict"]: one for one in rows[0].options}
    verdict = request.POST.get("verdict", "")
    option = options.get(verdict)
    reason = request.POST.get("reason", "")
    if option is None or (option["requires_reason"] and not reason.strip()):
        words = gettext("This verdict needs a reason.")
        return _again(request, rows, words)
    if option["destructive"] and request.POST.get("confirmed") != "1":
        words = gettext("Tick that you have read every item before you sign this.")
        return _again(request, rows, words)
    return show_results(
        request, [sign_one(request, row, verdict=verdict, reason=reason) for row in rows]
    )


def show_results(request: DashboardRequest, results: Sequence[BulkResult]) -> HttpResponse:
    """Answer with one line for each item."""
    signed = sum(one.is_signed for one in results)
    context = {
        "results": results,
        "title": gettext("%(n)s of %(all)s signed") % {"n": signed, "all": len(results)},
        "crumbs": [Crumb(_("Inbox"), address("inbox")), Crumb(_("Result"))],
        "position": newest_position(),
        "changes_url": address("changes"),
    }
    return render(request, "dashboard/inbox/bulk_result.html", context)


def _again(request: DashboardRequest, rows: Sequence[Decision], error: str) -> HttpResponse:
    still = _open(rows)
    if not still:
        return see_other(address("inbox"))
    return render(request, PAGE, _context(request, still, error=error), status=422)


def sign_one(request: DashboardRequest, row: Decision, *, verdict: str, reason: str) -> BulkResult:
    """Sign one item with the version and digest that the page showed of it."""
    posted = QueryDict(mutable=True)
    posted.update({
        "verdict": verdict,
        "reason": reason,
        "version": request.POST.get(f"version-{row.pk}", ""),
        "digest": request.POST.get(f"digest-{row.pk}", ""),
    })  # fmt: skip
    try:
        sent: SentVerdict = read_verdict(posted)
        decide_decision(
            decision_id=row.pk,
            verdict=Verdict(sent.verdict, sent.version, sent.digest, sent.reason),
            actor=actor_of(request),
            user_id=request.user.pk,
        )
    except (CountersignError, Invalid) as error:
        standing = read_decision(request.user, row.pk)
        return BulkResult(
            row_title(row), decision_url(row), refusal_words(standing, error), is_signed=False
        )
    done = read_decision(request.user, row.pk)
    return BulkResult(row_title(row), decision_url(row), outcome_words(done), is_signed=True)
