"""Reject an item and those beside it with one message; each is signed by itself, as in bulk.

Source: UI.md section 5.1 ("Steer"), DESIGN section 9 ("One door", "Bulk").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from dashboard.decision_cards import make_card
from dashboard.http import DashboardRequest, see_other, sir_only
from dashboard.inbox_rows import crumb_words
from dashboard.places import address, decision_url
from dashboard.shapes import Crumb
from dashboard.verdicts import ending_verdict
from dashboard.views.bulk import MAX_ITEMS, BulkResult, show_results, sign_one
from orchestration.models import Decision
from orchestration.selectors.activity import newest_position
from orchestration.selectors.inbox import count_blocked, list_siblings, read_decision
from orchestration.states import DecisionStatus

PAGE = "dashboard/inbox/siblings.html"


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def siblings(request: DashboardRequest, pk: int) -> HttpResponse:
    """Show an item and those beside it; a POST asks once more, a confirmed one signs each."""
    subject = read_decision(request.user, pk)
    if not ending_verdict(subject):
        return see_other(decision_url(subject))
    if request.method != "POST":
        if subject.status != DecisionStatus.OPEN:
            return see_other(decision_url(subject))
        return render(request, PAGE, _context(request, subject, _rows(request, subject)))
    rows = _rows(request, subject, keys=_shown(request.POST))
    reason = request.POST.get("reason", "")
    if not reason.strip():
        words = gettext("This verdict needs a reason.")
        return render(request, PAGE, _context(request, subject, rows, error=words), status=422)
    if request.POST.get("confirmed") != "1":
        return render(request, PAGE, _question(request, subject, rows, reason))
    return show_results(request, [_sign(request, row, reason) for row in rows])


def _sign(request: DashboardRequest, row: Decision, reason: str) -> BulkResult:
    """Sign one item; one that an earlier no of this form took back was shown and is gone too."""
    was_open = row.status == DecisionStatus.OPEN
    result = sign_one(request, row, verdict=ending_verdict(row), reason=reason)
    now = read_decision(request.user, row.pk)
    if was_open and now.status == DecisionStatus.WITHDRAWN:
        words = gettext("Withdrawn: the rejection before it ended the work it asks about.")
        return replace(result, is_withdrawn=True, words=words)
    return result


def _shown(posted: QueryDict) -> list[int]:
    """The items whose version the form carries: what was not on the page is not signed."""
    names = [name.removeprefix("version-") for name in posted if name.startswith("version-")]
    return [int(one) for one in names if one.isascii() and one.isdigit() and len(one) < 16]


def _rows(
    request: DashboardRequest, subject: Decision, *, keys: Sequence[int] | None = None
) -> list[Decision]:
    """The item and those beside it to which a no can be said."""
    rows = [subject, *list_siblings(request.user, subject, keys=keys)]
    return [row for row in rows if ending_verdict(row)][:MAX_ITEMS]


def _frame(subject: Decision) -> dict[str, object]:
    crumbs = [
        Crumb(_("Inbox"), address("inbox")), Crumb(crumb_words(subject), decision_url(subject))
    ]  # fmt: skip
    return {
        "action": address("siblings", subject.pk),
        "back_url": decision_url(subject),
        "crumbs": [*crumbs, Crumb(_("Reject with its siblings"))],
        "position": newest_position(),
        "changes_url": address("changes"),
    }


def _context(
    request: DashboardRequest, subject: Decision, rows: Sequence[Decision], *, error: str = ""
) -> dict[str, object]:
    decisions = [read_decision(request.user, row.pk) for row in rows]
    blocks = count_blocked(decisions)
    n = len(rows)
    return _frame(subject) | {
        "cards": [make_card(one, blocks=blocks[one.pk], is_page=False) for one in decisions],
        "title": ngettext(
            "Reject this item: it has no open sibling", "Reject this and its siblings: %(n)s items",
            n,
        )
        % {"n": n},
        "error": error,
        "reason": request.POST.get("reason", ""),
    }  # fmt: skip


def _question(
    request: DashboardRequest, subject: Decision, rows: Sequence[Decision], reason: str
) -> Mapping[str, object]:
    """The second question: how many, which, and the words that each of them gets."""
    n = len(rows)
    title = ngettext("Reject %(n)s item?", "Reject %(n)s items?", n) % {"n": n}
    signed = [
        {
            "row": row,
            "version": request.POST.get(f"version-{row.pk}", ""),
            "digest": request.POST.get(f"digest-{row.pk}", ""),
            "title": crumb_words(row),
        }
        for row in rows
    ]
    return _frame(subject) | {
        "question": title,
        "sign_text": ngettext("Sign: reject %(n)s item", "Sign: reject %(n)s items", n) % {"n": n},
        "title": title,
        "signed": signed,
        "reason": reason,
    }
