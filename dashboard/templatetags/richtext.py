"""Filters for text that agents wrote. They carry no rules."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from dashboard.engine_texts import actor_name
from dashboard.richtext import language_of, render_markdown, spell_command

register = template.Library()


@register.filter
def markdown(text: str | None) -> SafeString:
    """Render an agent's Markdown as clean HTML."""
    return render_markdown(text or "")


@register.filter
def lang_of(text: str | None) -> str:
    """The language of an agent's text, for the `lang` attribute."""
    return language_of(text or "")


@register.filter
def spelled(text: str | None) -> str:
    """A command as it is signed: what is hidden or turns text around is spelled out."""
    return spell_command(text or "")


@register.filter
def name_of(actor: str | None) -> str:
    """The bare name of an actor: `human:sir` is sir."""
    return actor_name(actor or "")
