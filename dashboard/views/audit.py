"""The audit trail: sealed events with filters, before and after, verification and export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from dashboard.audit_lines import audit_line, value_lines
from dashboard.choices import noun_choices, project_choices
from dashboard.forms import audit_filter, read_number
from dashboard.http import DashboardRequest, StreamedFile, page
from dashboard.places import address, with_query
from dashboard.shapes import Crumb
from orchestration.access import access_project
from orchestration.selectors.activity import newest_position
from orchestration.selectors.audit import (
    SEARCHED,
    AuditFilter,
    count_unsealed,
    list_events,
    list_nouns,
    newest_seal,
    read_event,
)
from orchestration.services.audit import export_events, verify_chain

PAGE = "dashboard/audit/page.html"
CSV_FIELDS = (
    "position", "id", "at", "project", "task", "kind", "actor", "subject", "before", "after",
    "why", "request_id", "hash",
)  # fmt: skip


@page
@require_safe
def audit(request: DashboardRequest) -> HttpResponse:
    """One page of the trail, newest first."""
    position = newest_position()
    wanted = audit_filter(request.GET)
    found = list_events(
        wanted, before=read_number(request.GET, "before"), after=read_number(request.GET, "after")
    )
    query = _query(wanted)
    url = address("audit")
    context = _seal_context() | {
        "lines": [audit_line(seal) for seal in found.seals],
        "older_url": with_query(url, query | {"before": found.older}) if found.older else "",
        "newer_url": with_query(url, query | {"after": found.newer}) if found.newer else "",
        "wanted": wanted,
        "query": query,
        "searched": SEARCHED if found.searched_to is not None else 0,
        "searched_to": found.searched_to,
        "words_url": with_query(url, query | {"words": "1"}) if found.is_exact else "",
        "clear_url": "" if wanted.is_empty else url,
        "projects": project_choices(url, query),
        "nouns": noun_choices(url, query, list_nouns()),
        "crumbs": [Crumb(_("Audit trail"))],
        "position": position,
        "export_urls": {
            form: with_query(address("audit_export"), {"project": wanted.project, "form": form})
            for form in ("jsonl", "csv")
        },
    }
    return render(request, PAGE, context)


def _query(wanted: AuditFilter) -> dict[str, str]:
    return {
        "project": wanted.project,
        "noun": wanted.noun,
        "actor": wanted.actor,
        "q": wanted.text,
        "on": wanted.on.isoformat() if isinstance(wanted.on, date) else "",
        "words": "1" if wanted.in_words else "",
    }


def _seal_context() -> dict[str, Any]:
    return {"seal": newest_seal(), "unsealed": count_unsealed()}


@page
@require_safe
def audit_event(request: DashboardRequest, position: int) -> HttpResponse:
    """One event whole: who, what, on what, each value before and after, and its seal."""
    seal = read_event(position)
    line = audit_line(seal)
    newest = newest_seal()
    context = {
        "line": line,
        "seal": seal,
        "values": value_lines(seal.event.before, seal.event.after),
        "older_url": address("audit_event", position - 1) if position > 1 else "",
        "newer_url": address("audit_event", position + 1)
        if newest is not None and position < newest.position
        else "",
        "crumbs": [Crumb(_("Audit trail"), address("audit")), Crumb(f"#{position}")],
        "position": newest_position(),
    }
    return render(request, "dashboard/audit/event.html", context)


@page
@require_POST
def audit_verify(request: DashboardRequest) -> HttpResponse:
    """Recompute the whole chain and say whether it holds, naming the first broken event."""
    count, fault = verify_chain()
    context = _seal_context() | {"checked": count, "fault": fault, "was_verified": True}
    if request.headers.get("HX-Request"):
        return render(request, f"{PAGE}#seal", context)
    found = list_events(AuditFilter())
    context |= {
        "lines": [audit_line(seal) for seal in found.seals],
        "wanted": AuditFilter(),
        "crumbs": [Crumb(_("Audit trail"))],
        "projects": project_choices(address("audit"), {}),
        "nouns": noun_choices(address("audit"), {}, list_nouns()),
        "export_urls": {
            form: with_query(address("audit_export"), {"form": form}) for form in ("jsonl", "csv")
        },
        "position": newest_position(),
    }
    return render(request, PAGE, context)


@page
@require_GET
def audit_export(request: DashboardRequest) -> StreamedFile:
    """Every sealed event of one project or of all, as JSON Lines or CSV."""
    slug = request.GET.get("project", "")
    project = access_project(request.user, slug) if slug else None
    project_id = project.pk if project is not None else None
    form = "csv" if request.GET.get("form") == "csv" else "jsonl"
    lines = _csv_lines(project_id) if form == "csv" else _json_lines(project_id)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/x-ndjson"
    name = f"audit-{slug or 'all'}.{form}"
    return StreamedFile(lines, content_type=kind, name=name)


def _json_lines(project_id: int | None) -> Iterator[str]:
    for event in export_events(project_id=project_id):
        yield json.dumps(event, ensure_ascii=False) + "\n"


def _csv_lines(project_id: int | None) -> Iterator[str]:
    """Write CSV rows; a cell that a spreadsheet would take for a formula gets an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(CSV_FIELDS)
    for event in export_events(project_id=project_id):
        writer.writerow([_cell(event[name]) for name in CSV_FIELDS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
