"""One decision: its page, its dock, its draft, and the verdict form that is one door for all kinds.

GET and HEAD never decide. A refused verdict answers with the card and the reason: 409 decided or
closed, 412 changed, 422 not offered or without its reason.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from dashboard.clock import clock_text
from dashboard.decision_cards import closed_of, dock_of, make_card, successor_url
from dashboard.engine_texts import engine_words
from dashboard.forms import SentVerdict, read_draft, read_number, read_verdict
from dashboard.http import (
    DashboardRequest,
    actor_of,
    is_fragment,
    may_decide,
    page,
    see_other,
    sir_only,
)
from dashboard.inbox_rows import KEY_HELP, crumb_words
from dashboard.outcomes import outcome_words
from dashboard.places import address, decision_url
from dashboard.shapes import Crumb, Dock
from dashboard.verdicts import VERDICT_LABELS
from dashboard.views.inbox import reader_dock, settled_decision
from orchestration.errors import (
    AlreadyDecided,
    Conflict,
    CountersignError,
    Invalid,
    NotFound,
    Stale,
)
from orchestration.models import Decision
from orchestration.selectors.activity import newest_position
from orchestration.selectors.inbox import (
    count_blocked,
    list_open,
    read_decision,
    successor_of,
)
from orchestration.services.decisions import (
    Verdict,
    decide_decision,
    mark_seen,
    save_draft,
)
from orchestration.states import DecisionStatus

PAGE = "dashboard/inbox/decision.html"


@page
@require_safe
def decision(request: DashboardRequest, pk: int) -> HttpResponse:
    """The page of one decision, open or closed: one form that works without script."""
    found = settled_decision(request, pk)
    if request.method == "GET":
        mark_seen(decision_id=pk, user_id=request.user.pk, actor=actor_of(request))
    return render(request, PAGE, _page_context(request, found))


def _page_context(
    request: DashboardRequest, found: Decision, *, error: str = "", draft: str | None = None
) -> dict[str, Any]:
    items = list_open(user_id=request.user.pk)
    keys = [one.decision.pk for one in items]
    at = keys.index(found.pk) if found.pk in keys else None
    blocks = items[at].blocks if at is not None else count_blocked([found])[found.pk]
    until = read_number(request.GET, "until")
    card = make_card(found, blocks=blocks, is_page=True, until=until)
    following = keys[(at + 1 if at is not None else 0) :]
    next_url = address("decision", following[0]) if following else ""
    context: dict[str, Any] = {
        "card": card,
        "dock": reader_dock(request, card, blocks=blocks, error=error, draft=draft),
        "closed": None if card.is_open else closed_of(found, next_url=next_url),
        "may_decide": may_decide(request),
        "crumbs": [Crumb(gettext_lazy("Inbox"), address("inbox")), Crumb(crumb_words(found))],
        "number": at + 1 if at is not None else "",
        "whole": len(keys),
        "previous_url": address("decision", keys[at - 1]) if at else "",
        "next_url": next_url,
        "successor_url": successor_url(found),
        "project_slug": found.project.slug,
        "position": newest_position(),
        "changes_url": address("changes", project=found.project.slug),
        "key_groups": KEY_HELP,
        "pause_url": address("pause", found.project.slug),
    }
    return context


@page
@require_GET
def decision_dock(request: DashboardRequest, pk: int) -> HttpResponse:
    """What stands in the dock's place now: the dock, the closed card, or the way to the next."""
    found = settled_decision(request, pk)
    if found.status == DecisionStatus.OPEN:
        blocks = count_blocked([found])[found.pk]
        card = make_card(found, blocks=blocks, is_page=False)
        dock = reader_dock(request, card, blocks=blocks)
        if dock is None:
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        return render(request, dock.template, {"dock": dock})
    return _standing(request, found)


PARTS = {
    "status": "dashboard/inbox/status_line.html",
    "waits": "dashboard/inbox/waits.html",
    "rounds": "dashboard/inbox/rounds.html",
}


@page
@require_GET
def decision_part(request: DashboardRequest, pk: int, name: str) -> HttpResponse:
    """One part of the card that changes when the item is closed."""
    template = PARTS.get(name)
    if template is None:
        raise NotFound("There is no such part.")
    found = read_decision(request.user, pk)
    is_page = name != "status" or request.GET.get("page") == "1"
    card = make_card(found, blocks=count_blocked([found])[found.pk], is_page=is_page)
    return render(request, template, {"card": card, "is_page": is_page})


def _standing(
    request: DashboardRequest, found: Decision, *, outcome: str = "", status: int = 200
) -> HttpResponse:
    """The part that takes the dock's place when an item is closed."""
    url = successor_url(found)
    if url:
        context = {"id": str(found.pk), "new_url": url, "outcome": outcome}
        return render(request, "dashboard/_parts/changed_dock.html", context, status=status)
    card = closed_of(found, outcome=outcome, is_refused=status != HTTPStatus.OK)
    return render(request, "dashboard/_parts/closed_dock.html", {"card": card}, status=status)


@sir_only
@require_http_methods(["PUT", "POST"])
def decision_draft(request: DashboardRequest, pk: int) -> HttpResponse:
    """Keep what was typed and not sent, on each pause of a second."""
    read_decision(request.user, pk)
    try:
        text = read_draft(request)
        save_draft(
            decision_id=pk, user_id=request.user.pk, text=text, actor=actor_of(request)
        )  # fmt: skip
    except CountersignError as error:
        return HttpResponse(
            engine_words(error.detail), status=error.status, content_type="text/plain"
        )
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


# --- The verdict ----------------------------------------------------------------------------------


@sir_only
@require_POST
def decide(request: DashboardRequest, pk: int) -> HttpResponse:
    """Take one verdict. A destructive one without script is asked about once more."""
    found = read_decision(request.user, pk)
    try:
        sent = read_verdict(request.POST)
    except Invalid as error:
        return _refuse(request, found, error, reason=request.POST.get("reason", ""))
    option = next((one for one in found.options if one["verdict"] == sent.verdict), None)
    needs_question = option is not None and option["destructive"] and not sent.is_confirmed
    if needs_question and found.status == DecisionStatus.OPEN and sent.reason.strip():
        return _ask_once_more(request, found, sent)
    verdict = Verdict(
        verdict=sent.verdict,
        seen_version=sent.version,
        seen_digest=sent.digest,
        reason=sent.reason,
        payload=sent.payload,
    )
    try:
        decide_decision(
            decision_id=pk, verdict=verdict, actor=actor_of(request), user_id=request.user.pk
        )
    except CountersignError as error:
        return _refuse(request, read_decision(request.user, pk), error, reason=sent.reason)
    done = read_decision(request.user, pk)
    if is_fragment(request):
        return _standing(request, done, outcome=outcome_words(done))
    return see_other(decision_url(done), sent_draft=str(pk))


def _ask_once_more(request: DashboardRequest, found: Decision, sent: SentVerdict) -> HttpResponse:
    """The confirmation page: full consequences and the reason, answered by another POST."""
    blocks = count_blocked([found])[found.pk]
    card = make_card(found, blocks=blocks, is_page=False)
    dock = dock_of(card, blocks=blocks)
    if dock is None:
        return see_other(decision_url(found))
    context = {
        "dock": dock,
        "verdict": next(one for one in dock.verdicts if one.verdict == sent.verdict),
        "reason": sent.reason,
        "sent": sent,
        "extra": {
            name: "on" if value is True else value
            for name, value in sent.payload.items()
            if name != "remove"
        },
        "remove": sent.payload.get("remove", ()),
        "back_url": decision_url(found),
        "crumbs": [
            Crumb(gettext_lazy("Inbox"), address("inbox")),
            Crumb(crumb_words(found), decision_url(found)),
            Crumb(gettext_lazy("Confirm")),
        ],
    }
    return render(request, "dashboard/inbox/confirm.html", context)


def _refuse(
    request: DashboardRequest, found: Decision, error: CountersignError, *, reason: str
) -> HttpResponse:
    """Answer a verdict that was not signed: the card that stands, and why. The text is kept."""
    if found.status != DecisionStatus.OPEN:
        _carry_reason(request, found, reason)
        words = refusal_words(found, error)
        if is_fragment(request):
            return _standing(request, found, outcome=words, status=error.status)
        context = _page_context(request, found) | {"refusal": words}
        return render(request, PAGE, context, status=error.status)
    words = refusal_words(found, error)
    if not is_fragment(request):
        context = _page_context(request, found, error=words, draft=reason)
        context["dock"] = _kept_choice(request, context["dock"])
        return render(request, PAGE, context, status=error.status)
    blocks = count_blocked([found])[found.pk]
    card = make_card(found, blocks=blocks, is_page=False)
    dock = reader_dock(request, card, blocks=blocks, error=words, draft=reason)
    if dock is None:
        return HttpResponse(status=error.status)
    context = {"dock": _kept_choice(request, dock)}
    return render(request, dock.template, context, status=error.status)


def _kept_choice(request: DashboardRequest, dock: Dock | None) -> Dock | None:
    """What was chosen and written stays so after a refusal."""
    if dock is None:
        return None
    fields = [replace(one, value=request.POST.get(one.name, one.value)) for one in dock.fields]
    return replace(dock, chosen=request.POST.get("verdict", ""), fields=fields)


def _carry_reason(request: DashboardRequest, found: Decision, reason: str) -> None:
    """Let typed words travel to the item that took this one's place."""
    following = successor_of(found) if found.status == DecisionStatus.WITHDRAWN else None
    if following is not None and reason.strip():
        save_draft(
            decision_id=following.pk, user_id=request.user.pk, text=reason, actor=actor_of(request)
        )


def refusal_words(found: Decision, error: CountersignError) -> str:
    """Say in the reader's language why nothing was signed."""
    if isinstance(error, AlreadyDecided) and found.decided_at is not None:
        who = found.decided_by.get_username() if found.decided_by else found.decided_by_policy
        words = VERDICT_LABELS[found.verdict].word if found.verdict in VERDICT_LABELS else ""
        return gettext("Not signed: “%(verdict)s” by %(who)s at %(time)s stands.") % {
            "verdict": words, "who": who, "time": clock_text(found.decided_at),
        }  # fmt: skip
    if isinstance(error, Stale):
        return gettext("Not signed: the item changed since it was shown. Your text is kept.")
    if isinstance(error, Conflict) and found.status != DecisionStatus.OPEN:
        return gettext("Not signed: the item was closed before. Your text is kept.")
    if isinstance(error, Invalid) and any(one["path"] == "reason" for one in error.errors):
        return gettext("This verdict needs a reason.")
    return gettext("Not signed: %(why)s.") % {"why": engine_words(error.detail).rstrip(".")}
