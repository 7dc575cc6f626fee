"""What people send: filters of lists, verdicts, comments, new work. Bad filters count as none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _

from orchestration.errors import Invalid
from orchestration.selectors.audit import AuditFilter
from orchestration.selectors.inbox import HistoryFilter, InboxFilter
from orchestration.selectors.master import SORTS, MasterFilter
from orchestration.states import DecisionKind, TaskStatus

MAX_SEARCH_CHARACTERS = 200
MAX_BODY_CHARACTERS = 20_000


def read_number(query: QueryDict, name: str) -> int | None:
    """A whole number of the query, or None. Digits only, so that no number is too large to bind."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def read_search(query: QueryDict) -> str:
    """What is searched for."""
    return query.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH_CHARACTERS]


def read_slug(query: QueryDict, name: str) -> str:
    """A slug of the query, or nothing."""
    text = query.get(name, "")
    return text if text.replace("-", "").replace("_", "").isalnum() else ""


def inbox_filter(query: QueryDict) -> InboxFilter:
    """Read what the inbox is narrowed to."""
    kind = query.get("kind", "")
    return InboxFilter(
        kind=kind if kind in tuple(DecisionKind) else "",
        project=read_slug(query, "project"),
        blocks_only=query.get("blocks") == "1",
        text=read_search(query),
    )


def history_filter(query: QueryDict) -> HistoryFilter:
    """Read what the history is narrowed to."""
    kind = query.get("kind", "")
    return HistoryFilter(
        verdict=read_slug(query, "verdict"),
        kind=kind if kind in tuple(DecisionKind) else "",
        project=read_slug(query, "project"),
        by=query.get("by", "").replace("\x00", "")[:150],
        text=read_search(query),
    )


def audit_filter(query: QueryDict) -> AuditFilter:
    """Read what the audit trail is narrowed to."""
    day = forms.DateField(required=False)
    try:
        on = day.clean(query.get("on", ""))
    except forms.ValidationError:
        on = None
    return AuditFilter(
        project=read_slug(query, "project"),
        noun=read_slug(query, "noun"),
        actor=query.get("actor", "").replace("\x00", "").strip()[:140],
        text=read_search(query),
        on=on,
        in_words=query.get("words") == "1",
    )


def master_filter(query: QueryDict) -> MasterFilter:
    """Read what a master list is narrowed and sorted by; what is not known counts as not given."""
    status, sort = query.get("status", ""), query.get("sort", "")
    return MasterFilter(
        status=status if status in tuple(TaskStatus) else "",
        text=read_search(query),
        sort=sort if sort in SORTS else "",
    )


@dataclass(frozen=True, slots=True)
class SentVerdict:
    """A verdict as the form sends it. Shape: `payload` holds the further fields of its kind."""

    verdict: str
    version: int
    digest: str
    reason: str
    payload: Mapping[str, Any]
    is_confirmed: bool


def read_verdict(posted: QueryDict) -> SentVerdict:
    """Read a verdict from a form.

    Errors: Invalid without a verdict, a version or a digest.
    """
    version = read_number(posted, "version")
    verdict, digest = posted.get("verdict"), posted.get("digest")
    if not verdict or version is None or not digest:
        raise Invalid("the form does not say what is signed")
    payload: dict[str, Any] = {}
    if posted.get("text"):
        payload["text"] = posted["text"]
    payload |= {name: posted[name] for name in ("turns", "cost_usd") if posted.get(name)}
    if posted.get("release_dependents"):
        payload["release_dependents"] = True
    if posted.getlist("remove"):
        payload["remove"] = posted.getlist("remove")
    return SentVerdict(
        verdict=verdict,
        version=version,
        digest=digest,
        reason=posted.get("reason", ""),
        payload=payload,
        is_confirmed=posted.get("confirmed") == "1",
    )


def read_draft(request: HttpRequest) -> str:
    """Read a draft from a JSON body or a form. Errors: Invalid for any other body."""
    if request.content_type != "application/json" and "text" in request.POST:
        return request.POST["text"]
    try:
        body = json.loads(request.body)
        text = body["text"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Invalid("a draft is an object with `text`") from error
    if not isinstance(text, str):
        raise Invalid("the text of a draft is text")
    return text.replace("\x00", "")


class NewWorkForm(forms.Form):
    """A message for a project."""

    project = forms.SlugField(label=_("Project"))
    text = forms.CharField(label=_("Message"), strip=False, widget=forms.Textarea)


class CommentForm(forms.Form):
    """A comment on a task."""

    body = forms.CharField(label=_("Comment"), max_length=MAX_BODY_CHARACTERS)


class ReasonForm(forms.Form):
    """A reason for a move on a task."""

    reason = forms.CharField(label=_("Reason"), max_length=MAX_BODY_CHARACTERS)


class WikiForm(forms.Form):
    """A version of a wiki page. Its name is its address."""

    name = forms.RegexField(
        label=_("Address"),
        regex=r"^(?!\.{1,2}\Z)[\w.@-]{1,200}\Z",
        error_messages={"invalid": _("Letters of any script, digits, - _ . @")},
    )
    title = forms.CharField(label=_("Title"), max_length=200, required=False)
    summary = forms.CharField(
        label=_("Summary"), max_length=2_000, required=False, widget=forms.Textarea
    )
    body = forms.CharField(
        label=_("Text"), max_length=1_000_000, strip=False, widget=forms.Textarea
    )


class ExperienceForm(forms.Form):
    """What was learned, for whoever does such work next."""

    title = forms.CharField(label=_("Title"), max_length=300)
    body = forms.CharField(
        label=_("Text"), max_length=1_000_000, required=False, strip=False, widget=forms.Textarea
    )
