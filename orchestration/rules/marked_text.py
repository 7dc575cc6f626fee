"""Read the Markdown documents of the workflows line by line: headings, boxes, labelled fields.

No Markdown library: a parser must name the line of each fault, tick a box without touching another
byte, and take hostile text in linear time. Fullwidth signs (［ ］ ： －) count as their ASCII ones.
Source: FORMATS ("strict-plan documents", "strict-spec documents").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestration.errors import Fault, Invalid

MAX_BYTES = 1_000_000
MAX_LINES = 20_000
MAX_LINE_CHARACTERS = 4_000
MAX_FAULTS = 200
BOM = "\ufeff"
BREAK = re.compile(r"\r\n|\r|\n")
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u0085\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Controls, and signs that show text in another order than it is read in."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.{0,500})")
BOX = re.compile(r"( {0,3}[-*+][ \t]+\[)([ xX]?)(\])[ \t]*(.*)")
NUMBER = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)[.、)]?[ \t]+(\S.*)")
FIELD = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:【([^【】]{1,40})】[ \t]*:?"
    r"|(?:\*\*)?([^\s:*【】\[\]][^:*【】\[\]]{0,39})(?:\*\*)?:(?:\*\*)?)[ \t]*(.*)"
)
FOLDED = {0xFF01 + at: 0x21 + at for at in range(94)} | {0x3000: 0x20, 0xA0: 0x20}


class DocumentInvalid(Invalid):
    """A document of a workflow is malformed. `errors` lists each fault with its line."""

    code = "document_invalid"


@dataclass(frozen=True, slots=True)
class Line:
    """One line. Shape: `plain` is `raw` with fullwidth signs folded, place by place."""

    number: int
    raw: str
    plain: str
    is_fenced: bool


@dataclass(slots=True)
class Faults:
    """Faults of one document, in the order they are found."""

    name: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, message: str) -> None:
        """Note a fault on a line."""
        self.found.append((line, message))

    def as_errors(self) -> list[Fault]:
        """List them by line; what is beyond the limit is counted."""
        rows = sorted(self.found, key=lambda one: one[0])
        shown = [
            Fault(path=self.name, message=f"line {line}: {said}")
            for line, said in rows[:MAX_FAULTS]
        ]
        if len(rows) > MAX_FAULTS:
            left = len(rows) - MAX_FAULTS
            shown.append(Fault(path=self.name, message=f"and {left} more faults"))
        return shown

    def check(self) -> None:
        """Raise if there is any. Errors: DocumentInvalid."""
        if self.found:
            raise DocumentInvalid(
                f"{self.name} has {len(self.found)} faults.", errors=self.as_errors()
            )


def read_lines(name: str, text: str, faults: Faults) -> list[Line]:
    """Split a document into lines.

    Errors: DocumentInvalid at once for one that is empty or too large to be read on.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        faults.add(1, f"has {size} bytes; at most {MAX_BYTES} are read")
        faults.check()
    rows = BREAK.split(text.removeprefix(BOM))
    if len(rows) > MAX_LINES:
        faults.add(MAX_LINES + 1, f"has {len(rows)} lines; at most {MAX_LINES} are read")
        faults.check()
    if not text.removeprefix(BOM).strip():
        faults.add(1, "is empty")
        faults.check()
    return list(_lines(rows, faults))


def _lines(rows: Sequence[str], faults: Faults) -> Iterator[Line]:
    fence = ""
    for number, raw in enumerate(rows, start=1):
        if len(raw) > MAX_LINE_CHARACTERS:
            faults.add(number, f"is longer than {MAX_LINE_CHARACTERS} characters")
            raw = raw[:MAX_LINE_CHARACTERS]
        if HIDDEN.search(raw):
            faults.add(number, "holds a control or direction character that hides text")
        mark = FENCE.match(raw)
        is_edge = mark is not None and (not fence or mark[1].startswith(fence))
        yield Line(number, raw, raw.translate(FOLDED), is_fenced=bool(fence) or is_edge)
        if is_edge and mark is not None:
            fence = "" if fence else mark[1]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading. Shape: `level` 1 to 6."""

    level: int
    text: str
    line: int


def heading_of(line: Line) -> Heading | None:
    """Read a line as a heading."""
    found = None if line.is_fenced else HEADING.match(line.plain)
    if found is None:
        return None
    text = line.raw[found.start(2) : found.end(2)].rstrip().rstrip("#").rstrip()
    return Heading(len(found[1]), text, line.number)


@dataclass(frozen=True, slots=True)
class Box:
    """A numbered box. Shape: `mark_at` is the place of its mark in the line."""

    number: str
    title: str
    is_done: bool
    line: int
    mark_at: int


def box_of(line: Line, faults: Faults) -> Box | None:
    """Read a line as a numbered box; one that nearly is one is a fault."""
    found = None if line.is_fenced else BOX.match(line.plain)
    if found is None:
        return None
    numbered = NUMBER.match(found[4])
    if not found[2]:
        faults.add(line.number, "a box is written [ ] or [x]")
    if numbered is None:
        faults.add(line.number, "a box needs a number and a title, as in `- [ ] 1.1 Title`")
        return None
    title = line.raw[found.start(4) + numbered.start(2) :].strip()
    return Box(numbered[1], title, found[2] in ("x", "X"), line.number, found.start(2))


def field_of(line: Line, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Read a line as a labelled field. Shape: its name and what stands behind the label."""
    found = None if line.is_fenced else FIELD.match(line.plain)
    if found is None:
        return None
    name = labels.get(folded(found[1] or found[2]))
    return (name, line.raw[found.start(3) :].strip()) if name is not None else None


def folded(text: str) -> str:
    """Fold a label or heading: case, width, emphasis and white space do not matter."""
    return " ".join(text.translate(FOLDED).replace("*", "").replace("`", "").casefold().split())


def labels_of(table: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Turn a table of names and their labels around."""
    return {folded(label): name for name, labels in table.items() for label in (name, *labels)}


def tick(text: str, box: Box, mark: str = "x") -> str:
    """Set the mark of a box, and change nothing else of the document."""
    start = 1 if text.startswith(BOM) else 0
    for number, found in enumerate(_line_starts(text, start), start=1):
        if number == box.line:
            at = found + box.mark_at
            return f"{text[:at]}{mark}{text[at + 1 :]}"
    return text


def _line_starts(text: str, start: int) -> Iterator[int]:
    yield start
    for found in BREAK.finditer(text, start):
        yield found.end()
