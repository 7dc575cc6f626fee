"""Templates hold under the strict Content-Security-Policy; scripts stay one behaviour each."""

import re

import pytest

from tests.shape.sources import ROOT, named

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = [path for path in sorted((ROOT / "static").rglob("*.js")) if "vendor" not in path.parts]
SCRIPT_LINES = 100
FORBIDDEN = {
    "inline script": re.compile(r"<script\b(?![^>]*\bsrc=)", re.IGNORECASE),
    "inline style element": re.compile(r"<style\b", re.IGNORECASE),
    "style attribute": re.compile(r"<[^>]*\sstyle\s*=", re.IGNORECASE),
    "event handler attribute": re.compile(r"<[^>]*\s(?:on[a-z]+|hx-on[:\w-]*)\s*=", re.IGNORECASE),
    "script address": re.compile(r"javascript:", re.IGNORECASE),
    "file from elsewhere": re.compile(
        r"(?:src|href)=[\"'](?:https?:)?//[^\"']*\.(?:js|css|woff2?)"
    ),
    "unescaped value": re.compile(r"\|\s*safe\b|\{%\s*autoescape off"),
}


def test_there_are_templates() -> None:
    assert TEMPLATES


@pytest.mark.parametrize("fault", FORBIDDEN)
def test_templates_need_nothing_that_the_policy_forbids(fault: str) -> None:
    assert not [
        named(path, number)
        for path in TEMPLATES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FORBIDDEN[fault].search(line)
    ]


def test_scripts_are_shorter_than_100_lines() -> None:
    assert not [
        named(path)
        for path in SCRIPTS
        if len(path.read_text(encoding="utf-8").splitlines()) >= SCRIPT_LINES
    ]
