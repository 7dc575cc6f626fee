"""Chinese is complete: what is marked is translated, and no word of a template is unmarked.

Extraction needs no gettext tools: Django rewrites templates, and Python's own parser reads code.
"""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

BASE = Path(__file__).resolve().parents[2]
CATALOGUE = BASE / "locale/zh_Hans/LC_MESSAGES/django.mo"
LITERAL = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
CALL = re.compile(rf"(?<![\w.])(n?p?gettext|_)\(({LITERAL})(?:,\s*({LITERAL}))?", re.DOTALL)
WITH_CONTEXT = ("pgettext", "npgettext")
MARKS = {"_", "gettext", "ngettext", "pgettext"}
TEMPLATES = sorted(
    path
    for path in (BASE / "templates").rglob("*.html")
    if path.parent.name != "api" and path.name != "parts.html"
)
"""All but the reference of the API, which is English, and the gallery, whose data is made up."""
SOURCES = sorted(
    [
        *(BASE / "dashboard").rglob("*.py"),
        BASE / "orchestration/words.py",
        BASE / "orchestration/mark_words.py",
        BASE / "orchestration/notice_words.py",
        BASE / "orchestration/selectors/digests.py",
    ]
)
UNTRANSLATED = {
    "Ctrl ⏎",
    "Countersign", "Ctrl K", "Enter", "Esc", "sha256", "JSON Lines", "CSV", "English", "S0", "S1",
    "S2", "S3", "P0", "Markdown", "JSON",
    "reject-24h", "FATAL_ERROR: MAX_RETRIES_EXCEEDED",
}  # fmt: skip
"""Names, keys and formats: the same in every language."""


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The messages of the compiled catalogue; a context stands before its message."""
    with CATALOGUE.open("rb") as compiled:
        catalogue = gettext.GNUTranslations(compiled)._catalog  # type: ignore[attr-defined]
    return {key[0] if isinstance(key, tuple) else key for key in catalogue}


def in_template(path: Path) -> Iterator[str]:
    """Each message that a template marks."""
    text = templatize(path.read_text(encoding="utf-8"), origin=str(path))
    for name, first, second in CALL.findall(text):
        message = ast.literal_eval(first)
        yield f"{message}\x04{ast.literal_eval(second)}" if name in WITH_CONTEXT else message


def in_code(path: Path) -> Iterator[str]:
    """Each message that a module marks."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id.removesuffix("_lazy").removesuffix("_noop")
        texts = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
        if name in MARKS and texts:
            yield f"{texts[0]}\x04{texts[1]}" if name in WITH_CONTEXT else texts[0]


def test_every_marked_text_of_the_templates_is_translated(known: set[str]) -> None:
    found = {message: path.name for path in TEMPLATES for message in in_template(path)}
    assert len(found) > 300
    assert {message: name for message, name in found.items() if message not in known} == {}


def test_every_marked_text_of_the_code_is_translated(known: set[str]) -> None:
    found = {message: path.name for path in SOURCES for message in in_code(path)}
    assert len(found) > 300
    assert {message: name for message, name in found.items() if message not in known} == {}


def unmarked(text: str) -> list[str]:
    """The words of a template that stand outside tags, variables and code."""
    text = re.sub(r"{% comment.*?{% endcomment %}", "", text, flags=re.DOTALL)
    text = re.sub(r"{#.*?#}|{% blocktranslate.*?{% endblocktranslate %}", "", text, flags=re.DOTALL)
    text = re.sub(r"{% block (?:shell|frame|main)_class %}.*?{% endblock %}", "", text)
    text = re.sub(r"<(code|pre|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    shown = r"""\b(?:aria-label|title|placeholder|alt)="([^"{]+)\""""
    attributes = re.findall(shown, text)
    text = re.sub(r"{%.*?%}|{{.*?}}", "\n", text, flags=re.DOTALL)
    text = re.sub(r"&\w+;", " ", re.sub(r"<[^>]*>", "\n", text))
    parts = [part.strip(" ·") for part in [*text.split("\n"), *attributes]]
    return [part for part in parts if re.search(r"[A-Za-z]{2}", part)]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_word_of_a_template_is_unmarked(path: Path) -> None:
    found = set(unmarked(path.read_text(encoding="utf-8")))
    assert found - UNTRANSLATED - {"human:sir"} == set()
