"""Tags and filters of the template parts: icons, times, short digests. They carry no rules."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.clock import ago_words, clock_text, long_age, short_age

register = template.Library()

DIGEST_HEAD, DIGEST_TAIL = 8, 4


@register.simple_tag
@cache
def icon(name: str, css_class: str = "") -> SafeString:
    """Draw one icon of the sprite, hidden from readers: the word beside it says it."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        css_class,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def moment(at: datetime | None, form: str = "clock") -> SafeString | str:
    """A time with its exact value. Forms: clock, seconds, age (3 h), length (3 h 04 min), ago."""
    if at is None:
        return ""
    if form in ("clock", "seconds"):
        words = clock_text(at, seconds=form == "seconds")
    else:
        elapsed = (timezone.now() - at).total_seconds()
        words = {"age": short_age, "length": long_age, "ago": ago_words}[form](elapsed)
    exact = timezone.localtime(at).isoformat(" ", "seconds")
    grows = format_html(' data-age="{}"', form) if form in ("age", "length") else ""
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>', at.isoformat(), exact, grows, words
    )


@register.filter
def short_digest(digest: str) -> str:
    """The head and tail of a digest; a short one stays whole."""
    if len(digest) <= DIGEST_HEAD + DIGEST_TAIL + 1:
        return digest
    return f"{digest[:DIGEST_HEAD]}…{digest[-DIGEST_TAIL:]}"


@register.filter
def share(value: float, whole: float) -> str:
    """A part of a whole as an SVG percentage."""
    ratio = 0.0 if not whole else min(max(float(value) / float(whole), 0.0), 1.0)
    return f"{ratio * 100:.1f}%"


@register.filter
def two_places(value: float | None) -> str:
    """A trust figure to two places; unknown stays empty, and the template says so."""
    return "" if value is None else f"{value:.2f}"
