"""The timeline of a root's steps on one axis.

Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.utils.translation import gettext, ngettext

from dashboard.charts import Gantt, GanttRow
from dashboard.clock import long_age
from dashboard.drawings import Bar, Span, make_axis
from orchestration.selectors.graph import StepTimes


def make_gantt(rows: Sequence[StepTimes], now: datetime) -> Gantt | None:
    """The timeline on one axis, or None while nothing has started."""
    spans = [
        [Span(one.look, one.start, one.end, _span_words(one.look, one.start, one.end, now))
         for one in row.stretches]
        for row in rows
    ]  # fmt: skip
    if not rows:
        return None
    axis = make_axis([span for held in spans for span in held], now)
    drawn = []
    for row, held in zip(rows, spans, strict=True):
        words = ngettext("%(n)s stretch", "%(n)s stretches", len(held)) % {"n": len(held)}
        bars = [_worded(axis.bar(span)) for span in held]
        drawn.append(GanttRow(row.step_key, row.title, bars, f"{row.step_key}: {words}"))
    summary = ngettext("Timeline of %(n)s step", "Timeline of %(n)s steps", len(rows))
    return Gantt(axis, drawn, summary % {"n": len(rows)})


LONG_WORDS_FROM, SHORT_WORDS_FROM = 26.0, 9.0
"""Per cent of the axis from which a bar holds the whole words, or only the length of time."""


def _worded(bar: Bar) -> Bar:
    """Leave out what a narrow bar cannot hold; its title still says the times."""
    if not bar.words or bar.width >= LONG_WORDS_FROM:
        return bar
    seconds = (bar.end - bar.start).total_seconds()
    return replace(bar, words=long_age(seconds) if bar.width >= SHORT_WORDS_FROM else "")


def _span_words(look: str, start: datetime, end: datetime, now: datetime) -> str:
    if look != "waiting" or end < now:
        return ""
    return gettext("waiting for you %(time)s") % {"time": long_age((end - start).total_seconds())}
