"""What is known: wiki pages with their versions, and experiences; read, found, written, reviewed.

Source: UI.md section 5.8, DESIGN sections 12 and 16.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.choices import project_choices
from dashboard.engine_texts import engine_words
from dashboard.forms import ExperienceForm, WikiForm, read_number, read_search, read_slug
from dashboard.http import (
    DashboardRequest,
    actor_of,
    may_decide,
    page,
    refusal,
    see_other,
    sir_only,
)
from dashboard.knowledge_lines import KNOWLEDGE_LABELS, experience_line, page_line
from dashboard.places import address, task_key, task_url, with_query
from dashboard.shapes import Crumb
from orchestration.access import access_experience, access_page, access_project
from orchestration.errors import CountersignError, NotFound
from orchestration.models import Project, WikiPage
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import list_project_names
from orchestration.selectors.knowledge_lists import count_holdings, list_experiences, list_pages
from orchestration.services.knowledge import (
    PageText,
    review_experience,
    review_page,
    write_experience,
    write_page,
)
from orchestration.states import KnowledgeStatus

FORM = "dashboard/knowledge/form.html"
READER = "dashboard/knowledge/reader.html"
VERSIONS_SHOWN = 100
VERDICTS = {"accept": KnowledgeStatus.ACCEPTED, "reject": KnowledgeStatus.REJECTED}


@page
@require_safe
def knowledge(request: DashboardRequest) -> HttpResponse:
    """The wiki pages or the experiences of one project, or what words find of them."""
    names = list_project_names()
    slug = read_slug(request.GET, "project") or (names[0].slug if names else "")
    if not slug:
        context = {"crumbs": [Crumb(_("Knowledge"))], "position": newest_position()}
        return render(request, "dashboard/knowledge/list.html", context)
    project = access_project(request.user, slug)
    words, kind = read_search(request.GET), request.GET.get("kind", "")
    is_wiki = kind != "experiences"
    only = request.GET.get("only") == "unreviewed"
    url = address("knowledge")
    query = {
        "project": slug, "kind": "" if is_wiki else kind, "q": words,
        "only": "unreviewed" if only else "",
    }  # fmt: skip
    if is_wiki:
        pages = list_pages(project, words, only_unreviewed=only)
        lines, total = [page_line(one, project) for one in pages.rows], pages.total
    else:
        found = list_experiences(project, words, only_unreviewed=only)
        lines, total = [experience_line(one, project) for one in found.rows], found.total
    context = _list_context(request, project, url, query) | {
        "lines": lines,
        "total": total,
        "words": words,
        "is_wiki": is_wiki,
        "only_unreviewed": only,
    }
    return render(request, "dashboard/knowledge/list.html", context)


def _list_context(
    request: DashboardRequest, project: Project, url: str, query: dict[str, str]
) -> dict[str, Any]:
    return {
        "project": project,
        "projects": project_choices(url, query)[1:],
        "holdings": count_holdings(project),
        "query": query,
        "wiki_url": with_query(url, {**query, "kind": ""}),
        "experiences_url": with_query(url, {**query, "kind": "experiences"}),
        "only_url": with_query(url, {**query, "only": "" if query["only"] else "unreviewed"}),
        "clear_url": with_query(url, {**query, "q": "", "only": ""}),
        "may_write": may_decide(request),
        "crumbs": [Crumb(_("Knowledge"))],
        "position": newest_position(),
    }


def _crumbs(project: Project, *, kind: str, last: str) -> list[Crumb]:
    here = address("knowledge", project=project.slug, kind=kind)
    return [Crumb(_("Knowledge"), here), Crumb(project.name, here), Crumb(last)]


# --- Wiki -----------------------------------------------------------------------------------------


@page
@require_safe
def wiki_page(request: DashboardRequest, project: str, name: str) -> HttpResponse:
    """One page in its newest version, or in an earlier one."""
    held = access_project(request.user, project)
    row = access_page(held, name)
    number = read_number(request.GET, "version")
    shown = row.versions.filter(number=number).first() if number else None
    if number and shown is None:
        raise NotFound("There is no such version.")
    versions = row.versions.order_by("-number")
    context = {
        "project": held,
        "title": shown.title if shown is not None else row.title,
        "name": row.name,
        "summary": shown.summary if shown is not None else row.summary,
        "body": shown.body if shown is not None else row.body,
        "row": row,
        "label": KNOWLEDGE_LABELS[row.status],
        "shown_version": shown.number if shown is not None else row.version,
        "is_old": shown is not None and shown.number != row.version,
        "versions": versions.defer("body", "summary")[:VERSIONS_SHOWN],
        "page_url": address("wiki_page", held.slug, row.name),
        "edit_url": address("wiki_edit", held.slug, row.name),
        "review_url": address("wiki_review", held.slug, row.name),
        "may_write": may_decide(request),
        "crumbs": _crumbs(held, kind="", last=row.title),
        "position": newest_position(),
    }
    return render(request, READER, context)


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def wiki_new(request: DashboardRequest, project: str) -> HttpResponseBase:
    """Write a new page."""
    held = access_project(request.user, project)
    form = WikiForm(request.POST or None, initial={"name": request.GET.get("name", "")})
    error = ""
    if request.method == "POST" and form.is_valid():
        try:
            made = _write(request, held, form, form.cleaned_data["name"], seen_version=0)
        except CountersignError as refused:
            error = _taken(refused)
        else:
            return see_other(address("wiki_page", held.slug, made.name), sent_draft="wiki-new")
    return _form(request, held, form, title=gettext("New page"), error=error, draft="wiki-new")


def _taken(error: CountersignError) -> str:
    if error.status == 412:
        return gettext("There is a page of this name already.")
    return engine_words(error.detail)


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def wiki_edit(request: DashboardRequest, project: str, name: str) -> HttpResponseBase:
    """Write a new version of a page; one that changed meanwhile is not overwritten."""
    held = access_project(request.user, project)
    row = access_page(held, name)
    stood = {"name": row.name, "title": row.title, "summary": row.summary, "body": row.body}
    form = WikiForm(
        {**request.POST.dict(), "name": row.name} if request.POST else None, initial=stood
    )
    error, status = "", 200
    draft = f"wiki-{row.pk}"
    if request.method == "POST" and form.is_valid():
        seen = read_number(request.POST, "version")
        try:
            _write(request, held, form, row.name, seen_version=seen if seen is not None else -1)
        except CountersignError as refused:
            error, status = engine_words(refused.detail), refused.status
            if status == 412:
                error = gettext(
                    "Not saved: the page changed while you wrote. Your text is kept; look at the"
                    " newest version, then save again."
                )
        else:
            return see_other(address("wiki_page", held.slug, row.name), sent_draft=draft)
    return _form(
        request, held, form, title=gettext("Edit %(name)s") % {"name": row.title}, error=error,
        page_row=row, status=status, draft=draft,
    )  # fmt: skip


def _write(
    request: DashboardRequest, held: Project, form: WikiForm, name: str, *, seen_version: int
) -> WikiPage:
    text = form.cleaned_data
    return write_page(
        project=held,
        name=name,
        text=PageText(text["body"], title=text["title"], summary=text["summary"]),
        actor=actor_of(request),
        seen_version=seen_version,
    )


def _form(
    request: DashboardRequest,
    held: Project,
    form: WikiForm | ExperienceForm,
    *,
    title: str,
    error: str = "",
    page_row: WikiPage | None = None,
    status: int = 200,
    draft: str,
) -> HttpResponse:
    is_wiki = isinstance(form, WikiForm)
    if request.method == "POST" and status == 200:
        status = 422 if not error else 409
    context = {
        "project": held,
        "form": form,
        "title": title,
        "error": error,
        "page_row": page_row,
        "is_wiki": is_wiki,
        "draft": draft,
        "crumbs": _crumbs(held, kind="" if is_wiki else "experiences", last=title),
        "position": newest_position(),
    }
    return render(request, FORM, context, status=status)


@sir_only
@require_POST
def wiki_review(request: DashboardRequest, project: str, name: str) -> HttpResponse:
    """Accept or reject the version that was read."""
    held = access_project(request.user, project)
    row = access_page(held, name)
    back = address("wiki_page", held.slug, row.name)
    verdict = VERDICTS.get(request.POST.get("verdict", ""))
    if verdict is None:
        raise NotFound("There is no such verdict.")
    try:
        review_page(
            page_id=row.pk, verdict=verdict, actor=actor_of(request),
            reason=request.POST.get("reason", "")[:2000],
            seen_version=read_number(request.POST, "version"),
        )  # fmt: skip
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return see_other(back)


# --- Experiences ----------------------------------------------------------------------------------


@page
@require_safe
def experience(request: DashboardRequest, project: str, pk: int) -> HttpResponse:
    """One experience."""
    held = access_project(request.user, project)
    row = access_experience(held, str(pk))
    task = row.task
    context = {
        "project": held,
        "title": row.title,
        "body": row.body,
        "row": row,
        "label": KNOWLEDGE_LABELS[row.status],
        "shown_version": row.version,
        "review_url": address("experience_review", held.slug, row.pk),
        "task_url": task_url(task, held) if task is not None else "",
        "task_key": task_key(task, held) if task is not None else "",
        "may_write": may_decide(request),
        "crumbs": _crumbs(held, kind="experiences", last=row.title),
        "position": newest_position(),
    }
    return render(request, READER, context)


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def experience_new(request: DashboardRequest, project: str) -> HttpResponseBase:
    """Write down an experience; what a person writes counts at once."""
    held = access_project(request.user, project)
    form = ExperienceForm(request.POST or None)
    error, draft = "", "experience-new"
    if request.method == "POST" and form.is_valid():
        try:
            made = write_experience(
                project=held, title=form.cleaned_data["title"], body=form.cleaned_data["body"],
                actor=actor_of(request),
            )  # fmt: skip
        except CountersignError as refused:
            error = engine_words(refused.detail)
        else:
            return see_other(address("experience", held.slug, made.pk), sent_draft=draft)
    return _form(request, held, form, title=gettext("New experience"), error=error, draft=draft)


@sir_only
@require_POST
def experience_review(request: DashboardRequest, project: str, pk: int) -> HttpResponse:
    """Accept or reject an experience."""
    held = access_project(request.user, project)
    row = access_experience(held, str(pk))
    back = address("experience", held.slug, row.pk)
    verdict = VERDICTS.get(request.POST.get("verdict", ""))
    if verdict is None:
        raise NotFound("There is no such verdict.")
    try:
        review_experience(
            experience_id=row.pk, verdict=verdict, actor=actor_of(request),
            reason=request.POST.get("reason", "")[:2000],
            seen_version=read_number(request.POST, "version"),
        )  # fmt: skip
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return see_other(back)
