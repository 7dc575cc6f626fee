"""Draw a delivery archive as Markdown, and its changelog entry. Pure text from the document.

Source: FORMATS ("Delivery archive").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from orchestration.contracts.archive import ArchiveDocument
from orchestration.rules.archive_words import words_of
from orchestration.rules.markdown_text import CELL_CHARACTERS, block, code, drawn, plain, table

MAX_DRAWN_STEPS = 200
CHANGELOG_LINES = 20
Words = Mapping[str, str]


def cell(text: object) -> str:
    """Write one value into a table cell."""
    return plain(str(text), CELL_CHARACTERS) or "–"


def archive_markdown(document: ArchiveDocument) -> str:
    """Draw the whole archive in the language of its project."""
    words = words_of(document.head.language)
    parts = [_head(document, words)]
    for draw in (_problem, _implementation, _use, _audit, _impact, _deliveries):
        parts += draw(document, words)
    return "\n\n".join(parts) + "\n"


def _head(document: ArchiveDocument, words: Words) -> str:
    head = document.head
    line = words["head"].format(task=head.task, version=head.version, at=head.archived_at)
    facts = [("external_key", head.external_key), ("spec_id", head.spec_id),
             ("route", head.route), ("attempt", str(head.attempt))]  # fmt: skip
    listed = "\n".join(f"- {words[name]}: {plain(value)}" for name, value in facts if value)
    return f"# 《{words[head.kind.value]}》 {plain(head.title)}\n\n{line}\n\n{listed}"


def _problem(document: ArchiveDocument, words: Words) -> list[str]:
    part = document.problem
    rows = [
        (cell(row.step), cell(row.title), cell(row.outcome), str(row.artifacts), cell(row.checks))
        for row in part.results
    ]
    said = [f"## {words['s1']}", f"### {words['problem']}", block(part.text)]
    if part.specification:
        said += [f"### {words['specification']}", block(part.specification)]
    said += [f"### {words['solution']}", plain(part.solution)]
    if part.assumptions:
        said += [f"### {words['assumptions']}", _bullets(part.assumptions)]
    heads = ("step", "title", "outcome", "artifacts", "checked")
    return [*said, f"### {words['results']}", _table(words, heads, rows)]


def _implementation(document: ArchiveDocument, words: Words) -> list[str]:
    part = document.implementation
    components = [
        (cell(row.step), cell(row.title), cell(row.role), str(row.phase), cell(row.made_by),
         _codes(row.artifacts))
        for row in part.components
    ]  # fmt: skip
    flows = [(cell(row.source), cell(row.target), _codes(row.artifacts)) for row in part.flows]
    drawing = [f"```mermaid\n{part.diagram}\n```"]
    if len(part.components) > MAX_DRAWN_STEPS:
        drawing.append(words["by_phase"].format(count=len(part.components)))
    return [
        f"## {words['s2']}",
        f"### {words['components']}",
        _table(words, ("step", "title", "role", "phase", "made_by", "artifacts"), components),
        f"### {words['diagram']}",
        *drawing,
        f"### {words['flows']}",
        _table(words, ("from", "to", "artifacts"), flows),
    ]


def _use(document: ArchiveDocument, words: Words) -> list[str]:
    part = document.use
    files = [(code(row.path), cell(row.role), _codes(row.depends_on)) for row in part.files]
    settings = [(code(row.name), cell(row.value)) for row in part.configuration]
    commands = [
        (cell(row.step), cell(row.use), code(row.command), cell(row.result))
        for row in part.commands
    ]
    heads = ("step", "use", "command", "result")
    return [
        f"## {words['s3']}",
        f"### {words['files']}",
        _table(words, ("path", "role", "depends_on"), files),
        f"### {words['configuration']}",
        _table(words, ("name", "value"), settings),
        f"### {words['commands']}",
        _table(words, heads, commands) if commands else words["no_commands"],
    ]


def _audit(document: ArchiveDocument, words: Words) -> list[str]:
    part = document.audit
    checks = [(cell(row.category), cell(row.status), cell(row.figure)) for row in part.checks]
    findings = [
        (cell(row.step), cell(row.severity), cell(row.category), cell(row.title),
         cell(row.status), cell(row.outcome))
        for row in part.findings
    ]  # fmt: skip
    decisions = [
        (cell(row.at), cell(row.question), cell(row.verdict), cell(row.by), cell(row.why))
        for row in part.decisions
    ]
    departures = [
        (cell(row.change), cell(row.step), cell(row.by), cell(row.why)) for row in part.deviations
    ]
    lessons = [(cell(row.source), cell(row.text)) for row in part.lessons]
    found = ("step", "severity", "category", "title", "status", "outcome")
    return [
        f"## {words['s4']}",
        f"### {words['state']}",
        f"**{part.state}**",
        f"### {words['exceptions']}",
        _bullets(part.exceptions) or words["none"],
        f"### {words['checks']}",
        _table(words, ("category", "status", "figure"), checks),
        f"### {words['findings']}",
        _table(words, found, findings),
        f"### {words['decisions']}",
        _table(words, ("at", "question", "verdict", "by", "why"), decisions),
        f"### {words['deviations']}",
        _table(words, ("change", "step", "by", "why"), departures),
        f"### {words['lessons']}",
        _table(words, ("source", "text"), lessons),
    ]


def _impact(document: ArchiveDocument, words: Words) -> list[str]:
    rows = [
        (code(row.path), str(row.version), cell(", ".join(row.readers))) for row in document.impact
    ]
    return [f"## {words['s5']}", _table(words, ("path", "version", "readers"), rows)]


def _deliveries(document: ArchiveDocument, words: Words) -> list[str]:
    rows = [
        (code(row.path), str(row.version), cell(row.step), str(row.size_bytes), code(row.sha256))
        for row in document.deliveries
    ]
    return [f"## {words['s6']}", _table(words, ("path", "version", "step", "size", "sha256"), rows)]


def _table(words: Words, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table([words[head] for head in heads], rows) if rows else words["none"]


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {plain(line)}" for line in lines)


def _codes(names: Sequence[str]) -> str:
    shown = ", ".join(code(name) for name in names[:CHANGELOG_LINES])
    return shown + (f" +{len(names) - CHANGELOG_LINES}" if len(names) > CHANGELOG_LINES else "")


def changelog_entry(document: ArchiveDocument, *, marker: str) -> str:
    """Draw the entry of CHANGELOG.md: time and title, changes, files, verification, leftovers.

    `marker` is a comment that names the entry, so that it is written once.
    """
    words = words_of(document.head.language)
    head, audit = document.head, document.audit
    changes = [f"{row.step}: {row.title}" for row in document.implementation.components]
    checked = "; ".join(f"{row.category}: {row.figure or row.status}" for row in audit.checks)
    files = [row.path for row in document.deliveries]
    lines = [
        f"## {head.archived_at} {plain(head.title)} ({plain(head.task)})",
        f"<!-- {marker} -->",
        "",
        f"- {words['cl_changes']}: {_short(changes, plain, words)}",
        f"- {words['cl_files']}: {_short(files, code, words)}",
        f"- {words['cl_verification']}: "
        f"{words['cl_result'].format(checks=plain(checked, 1000), state=audit.state)}",
        f"- {words['cl_leftovers']}: {_short(audit.exceptions, plain, words)}",
    ]
    return "\n".join(lines) + "\n"


def _short(lines: Sequence[str], write: Callable[[str], str], words: Words) -> str:
    if not lines:
        return words["none"]
    shown = "; ".join(write(line) for line in lines[:CHANGELOG_LINES])
    more = len(lines) - CHANGELOG_LINES
    return f"{shown}; {words['cl_more'].format(count=more)}" if more > 0 else shown


def mermaid(nodes: Sequence[tuple[str, str, int]], edges: Iterable[tuple[str, str]]) -> str:
    """Draw a graph as Mermaid text; beyond MAX_DRAWN_STEPS, its phases.

    Shape: nodes as (step, title, phase), edges as (from, to) by step.
    """
    if len(nodes) > MAX_DRAWN_STEPS:
        return _phases(nodes)
    names = {step: f"s{at}" for at, (step, _, _) in enumerate(nodes, 1)}
    lines = ["flowchart LR"]
    lines += [f'    {names[step]}["{drawn(f"{step} {title}")}"]' for step, title, _ in nodes]
    lines += [
        f"    {names[source]} --> {names[target]}"
        for source, target in edges
        if source in names and target in names
    ]
    return "\n".join(lines)


def _phases(nodes: Sequence[tuple[str, str, int]]) -> str:
    counts: dict[int, int] = {}
    for _, _, phase in nodes:
        counts[phase] = counts.get(phase, 0) + 1
    lines = ["flowchart LR"]
    ordered = sorted(counts)
    lines += [f'    p{phase}["{phase} · {counts[phase]}"]' for phase in ordered]
    lines += [f"    p{one} --> p{two}" for one, two in pairwise(ordered)]
    return "\n".join(lines)
