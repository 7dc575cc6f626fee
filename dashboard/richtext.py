"""Agents' Markdown as safe HTML. Agent text is hostile: it is parsed without HTML and then cleaned.

Two walls: markdown-it with raw HTML off, and nh3's allow-list on what it made. Pictures become
links, so that reading a card loads nothing from elsewhere.
Source: DESIGN section 16, UI.md section 8 (`lang`).
"""

from __future__ import annotations

import re
import unicodedata

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

MAX_RENDERED_CHARACTERS = 20_000
MAX_BRACKETS = 1_000
"""Links nest; the parser's time grows with the square of the open brackets."""
TAGS = frozenset(
    {
        "p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a",
        "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
    }
)  # fmt: skip
SCHEMES = frozenset({"http", "https", "mailto"})
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Kinds of characters (Unicode) that show nothing by themselves."""
LINE_END = "⏎"
LINE_ENDS = re.compile(r"(\n+)")
HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
LATIN = re.compile(r"[A-Za-z]{2,}")

_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)
_markdown.disable(["image", "html_block", "html_inline"])


def render_markdown(text: str) -> SafeString:
    """Render Markdown of an agent; text too long, or of too many brackets, is shown as it is."""
    if len(text) > MAX_RENDERED_CHARACTERS or text.count("[") > MAX_BRACKETS:
        return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308  # escaped one call before
    cleaned = nh3.clean(
        _markdown.render(text),
        tags=set(TAGS),
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(cleaned)  # noqa: S308  # nh3 let only its allow-list through


def language_of(text: str) -> str:
    """Guess the language of agent text for `lang`: "zh", "en", or nothing when it says neither."""
    head = text[:2_000]
    if HAN.search(head):
        return "zh"
    return "en" if LATIN.search(head) else ""


def spell_command(text: str) -> str:
    """Spell a command as `spell_hidden`, but show where its lines end as a mark and a line break.

    Ends without text between them break the line once, so that no rest is pushed out of sight. A
    mark that the command holds itself is spelled: it ends no line.
    """
    mark = f"⟨U+{ord(LINE_END):04X}⟩"
    return "".join(
        LINE_END * len(part) + "\n"
        if part.startswith("\n")
        else spell_hidden(part).replace(LINE_END, mark)
        for part in LINE_ENDS.split(text)
    )


def spell_hidden(text: str) -> str:
    """Write characters that show nothing, or change how others are shown, as their numbers."""
    return "".join(
        f"⟨U+{ord(one):04X}⟩" if unicodedata.category(one) in HIDDEN else one for one in text
    )
