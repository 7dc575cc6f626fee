"""Summarise a JUnit XML report: counts and failing cases.

A document type is refused before anything of it is read, so no entity is ever declared, expanded or
fetched.
Source: FORMATS ("Validation and release evidence package").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

MAX_CHARACTERS = 5_000_000
MAX_DEPTH = 64
TAIL_CHARACTERS = 2_000
TROUBLES = frozenset({"failure", "error"})


@dataclass(frozen=True, slots=True)
class Case:
    """A failing test case. Shape: `id` is `classname.name`, cut at 300 characters."""

    id: str
    output_tail: str


@dataclass(slots=True)
class Report:
    """What a report says. Shape: `failed` in document order; `errors` are among them."""

    name: str = "JUnit"
    tests: int = 0
    skipped: int = 0
    failed: list[Case] = field(default_factory=list)

    @property
    def figure(self) -> str:
        """The counts in one line."""
        passed = self.tests - self.skipped - len(self.failed)
        return f"{passed} passed, {len(self.failed)} failed, {self.skipped} skipped"


def read_junit(text: str) -> Report:
    """Read a report; what it counts is counted here, case by case.

    Errors: ValueError saying what is wrong with it.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CHARACTERS} characters")
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.said
    try:
        parser.Parse(_without_encoding(text), True)  # noqa: FBT003  # the C function takes no name
    except expat.ExpatError as error:
        raise ValueError(f"is not well-formed XML: {error}") from None
    if not reader.is_junit:
        raise ValueError("is no JUnit report: it has no testsuite")
    return reader.report


def _without_encoding(text: str) -> bytes:
    """The text is decoded already: whatever encoding it names, these bytes are UTF-8."""
    return text.strip().encode("utf-8", "replace")


def _refuse_doctype(*_: object) -> None:
    raise ValueError("has a document type, which is refused")


class _Reader:
    """Collect the cases while the parser runs."""

    def __init__(self) -> None:
        self.report = Report()
        self.is_junit = False
        self._depth = 0
        self._case = ""
        self._trouble = False
        self._is_skipped = False
        self._is_in_trouble = False
        self._tail = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("is nested too deeply")
        if name in ("testsuite", "testsuites"):
            self.is_junit = True
            if attributes.get("name") and self.report.name == "JUnit":
                self.report.name = attributes["name"][:200]
        elif name == "testcase":
            whole = (attributes.get("classname", ""), attributes.get("name", ""))
            self._case = ".".join(part for part in whole if part)[:300] or "unnamed"
            self._trouble = self._is_skipped = False
            self._tail = ""
        elif name in TROUBLES:
            self._trouble = self._is_in_trouble = True
            self._tail = attributes.get("message", "")[-TAIL_CHARACTERS:]
        elif name == "skipped":
            self._is_skipped = True

    def said(self, text: str) -> None:
        """Keep the end of what a failure says."""
        if self._is_in_trouble:
            self._tail = f"{self._tail}{text}"[-TAIL_CHARACTERS:]

    def end(self, name: str) -> None:
        """End an element."""
        self._depth -= 1
        if name in TROUBLES:
            self._is_in_trouble = False
        elif name == "testcase" and self._case:
            self.report.tests += 1
            if self._trouble:
                self.report.failed.append(Case(self._case, self._tail.strip()))
            elif self._is_skipped:
                self.report.skipped += 1
            self._case = ""
