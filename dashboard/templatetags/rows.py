"""Tags that draw what a page shows a hundred times: states, roots of the list, lines of the log.

A template that is included for each row costs ten times as much; the words and their order are the
parts' all the same. They carry no rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from dashboard.charts import LogLine, MasterRow
from dashboard.shapes import InboxRow, RowTravel
from dashboard.templatetags.parts import icon, moment
from dashboard.vocabulary import Label, Role

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

register = template.Library()
NOTHING = SafeString("")
LONG_STEP = 4
"""Signs of a step's key that its column in the log holds."""


@register.simple_tag
def state_mark(
    label: Label | str,
    words: str | StrPromise = "",
    *,
    size: str = "",
    pill: object = None,
    extra: str = "",
) -> SafeString:
    """Icon, word, colour, in that order; amber is a pill unless `pill` is False."""
    if not isinstance(label, Label):
        label = Label("", "", Role.GREY)
    return format_html(
        '<span class="state {}{}{}"{}>{}<span>{}{}</span></span>',
        label.css_class,
        " state--pill" if label.role == Role.AMBER and pill is not False else "",
        " state--small" if size == "small" else "",
        format_html(' title="{}"', label.note) if label.note else "",
        icon(label.icon),
        words or label.word,
        extra,
    )


@register.simple_tag
def master_row(row: MasterRow) -> SafeString:
    """One root task on the master list."""
    return format_html(
        '<a class="master-row" id="master-{}" href="{}"{}{}><span class="master-key" title="{}">{}'
        '</span><span class="master-title">{}</span><span class="master-steps">{}</span>'
        '<span class="master-state">{}{}{}{}</span></a>\n',
        row.key,
        row.url,
        SafeString(' aria-current="true"') if row.is_current else "",
        _live(row) if row.topic else "",
        row.key,
        row.key,
        row.title,
        row.steps,
        state_mark(row.label, size="small", pill=False),
        _span(row.stage),
        _span(row.note),
        _waits(row.waiting) if row.waiting else "",
    )


def _live(row: MasterRow) -> SafeString:
    return format_html(
        ' data-topic="{}" data-version="{}" data-fragment="{}" data-replace="same"',
        row.topic,
        row.version,
        row.fragment_url,
    )


def _span(text: str | StrPromise) -> SafeString:
    return format_html("<span>{}</span>", text) if text else NOTHING


def _waits(count: int) -> SafeString:
    words = ngettext("%(n)s waits for you", "%(n)s wait for you", count) % {"n": count}
    return format_html(
        '<span class="state state--small state--amber">{}<span>{}</span></span>',
        icon("hand-stop"),
        words,
    )


@register.simple_tag
def log_lines(lines: Iterable[LogLine]) -> SafeString:
    """Lines of the live log."""
    return mark_safe("".join(map(log_line, lines)))  # noqa: S308  # each is made by format_html


@register.simple_tag
def log_line(line: LogLine) -> SafeString:
    """One line of the live log."""
    return format_html(
        '<div class="log-line{}" data-step="{}"{}>{}<span title="{}">{}</span>'
        '<span title="{}">{}</span><span class="log-text">{}</span></div>\n',
        f" log-line--{line.look}" if line.look else "",
        line.step,
        " data-long-step" if len(line.step) > LONG_STEP else "",
        moment(line.at, "seconds"),
        line.step,
        line.step,
        line.source,
        line.source,
        line.text,
    )


TRAVEL_ICONS = {
    "signing": ("loader-2", "icon--spin"),
    "signed": ("circle-check",),
    "refused": ("arrow-back-up",),
    "changed": ("refresh",),
}
CURRENT = SafeString(' aria-current="true"')


@register.simple_tag
def inbox_row(row: InboxRow) -> SafeString:
    """One decision in the list, at rest or while a verdict travels."""
    travel = row.travel
    looks = {
        "is-current": row.is_current, "is-unseen": row.is_unseen, "is-p0": row.is_p0,
        f"is-{travel.state}" if travel else "": travel is not None,
    }  # fmt: skip
    return format_html(
        '<li id="row-{}" class="item{}" data-row="{}" data-kind="{}" data-topic="decision:{}"'
        ' data-version="{}" data-digest="{}"{}>\n  {}\n  {}\n</li>\n',
        row.id,
        "".join(f" {look}" for look, is_so in looks.items() if is_so),
        row.id,
        row.kind,
        row.id,
        row.version,
        row.digest,
        format_html(' data-fragment="{}"', row.fragment_url) if row.fragment_url else "",
        _tick(row) if row.is_selectable and travel is None else "",
        _row_link(row),
    )


def _tick(row: InboxRow) -> SafeString:
    return format_html(
        '<input class="row-tick form-check-input js-only" type="checkbox" tabindex="-1"'
        ' name="selected" value="{}" form="bulk" aria-label="{}">',
        row.id,
        gettext("Select: %(title)s") % {"title": row.title},
    )


def _row_link(row: InboxRow) -> SafeString:
    travel = row.travel
    drawn = TRAVEL_ICONS.get(travel.state, (row.icon,)) if travel else (row.icon,)
    return format_html(
        '<a class="row-link" href="{}"{}{} tabindex="{}">\n    {}\n'
        '    <span class="row-title"{}>{}{}</span>\n    <span class="row-age">{}</span>\n    {}\n'
        "  </a>",
        row.url,
        format_html(' data-pane="{}"', row.pane_url) if row.pane_url else "",
        CURRENT if row.is_current else "",
        0 if row.is_current else -1,
        icon(*drawn),
        " data-unseen" if row.is_unseen else "",
        SafeString('<span class="row-p0">P0</span> ') if row.is_p0 else "",
        row.title,
        _travel_age(travel) if travel else moment(row.opened_at, "age"),
        format_html('<span class="row-note">{}</span>', travel.note) if travel else _row_foot(row),
    )


def _travel_age(travel: RowTravel) -> SafeString | str:
    if travel.at:
        return moment(travel.at)
    read = gettext("Read")
    return format_html('<span class="link row-read">{}</span>', read) if travel.url else ""


def _row_foot(row: InboxRow) -> SafeString:
    blocks = gettext("blocks %(n)s") % {"n": row.blocks} if row.blocks else ""
    return format_html(
        '<span class="row-where">{}</span>\n    <span class="row-blocks">{}</span>',
        format_html_join(" · ", "{}", ((part,) for part in row.where)),
        blocks,
    )
