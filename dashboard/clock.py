"""Times and lengths in the reader's words: clock times, one unit for lists, two for cards.

Source: UI.md section 7.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext


def clock_text(at: datetime, *, seconds: bool = False) -> str:
    """24 h clock; today without a date, another day this year as month and day."""
    local, today = timezone.localtime(at), timezone.localdate()
    clock = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    if local.date() == today:
        return clock
    day = f"{local:%m-%d}" if local.year == today.year else local.date().isoformat()
    return f"{day} {clock}"


def short_age(seconds: float) -> str:
    """One unit, for lists: 12 min, 3 h, 2 d."""
    whole = max(int(seconds), 0)
    for size, text in (
        (86_400, gettext("%(n)s d")),
        (3600, gettext("%(n)s h")),
        (60, gettext("%(n)s min")),
    ):
        if whole >= size:
            return text % {"n": whole // size}
    return gettext("%(n)s s") % {"n": whole}


def long_age(seconds: float) -> str:
    """Two units, for cards: 3 h 04 min."""
    whole = max(int(seconds), 0)
    days, hours, minutes = whole // 86_400, whole // 3600, whole // 60
    if days:
        return gettext("%(d)s d %(h)s h") % {"d": days, "h": hours % 24}
    if hours:
        return gettext("%(h)s h %(m)02d min") % {"h": hours, "m": minutes % 60}
    return short_age(seconds)


def ago_words(seconds: float) -> str:
    """How long ago, for tables: now, 12 min ago, 2 d ago."""
    if seconds < 60:
        return gettext("now")
    return gettext("%(age)s ago") % {"age": short_age(seconds)}
