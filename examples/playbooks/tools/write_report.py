"""Write a Markdown report from what the other steps left behind.

Each input is named with its sha-256, so that a reader can tell from which version the report was
made. A file that changed since the inventory is listed as changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

Section = Callable[[Any], Iterator[str]]
LISTED = 20


def main() -> None:
    """Write the report on the current directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--title", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("inputs", type=Path, nargs="+")
    options = parser.parse_args()
    lines = [f"# {options.title}", ""]
    for path in options.inputs:
        section = SECTIONS.get(path.stem)
        if section is not None:
            lines += [*section(json.loads(path.read_text(encoding="utf-8"))), ""]
    lines += [*made_from(options.inputs, options.output), ""]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(lines), encoding="utf-8")
    print(f"wrote {options.output}", flush=True)


def made_from(inputs: list[Path], output: Path) -> Iterator[str]:
    """List the inputs with their digests, as links."""
    yield from ("## Made from", "", "| file | bytes | sha-256 |", "|---|---:|---|")
    for path in inputs:
        data = path.read_bytes()
        link = quote(os.path.relpath(path, output.parent))
        digest = hashlib.sha256(data).hexdigest()
        yield f"| [{cell(path.as_posix())}]({link}) | {len(data)} | `{digest}` |"


def inventory_section(document: dict[str, Any]) -> Iterator[str]:
    """Show the totals, the largest files, and what changed since."""
    totals = document["totals"]
    yield from ("## Inventory", "")
    yield f"{totals['files']} files, {totals['lines']} lines, {totals['bytes']} bytes."
    yield from ("", "| kind | files |", "|---|---:|")
    for kind, count in list(totals["by_kind"].items())[:LISTED]:
        yield f"| {cell(kind)} | {count} |"
    yield from ("", "| Python module | lines | classes | functions |", "|---|---:|---:|---:|")
    modules = [row for row in document["files"] if "functions" in row]
    for row in sorted(modules, key=lambda row: -row["lines"])[:LISTED]:
        counts = f"{row['lines']} | {row['classes']} | {row['functions']}"
        yield f"| {cell(row['path'])} | {counts} |"
    changed = [row["path"] for row in document["files"] if digest_of(row["path"]) != row["sha256"]]
    yield ""
    if changed:
        yield f"Changed since the inventory: {', '.join(map(code, changed))}."
    else:
        yield "No file changed since the inventory."


def digest_of(path: str) -> str | None:
    """Hash a file as it is now; None when it is gone."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def compile_section(document: dict[str, Any]) -> Iterator[str]:
    """Say what compiles."""
    yield from ("## Byte-compilation", "")
    failures = document["failures"]
    yield f"{document['compiled']} files compiled, {len(failures)} failed."
    yield from places(failures)
    if document["warnings"]:
        yield f"The compiler warns {len(document['warnings'])} times:"
        yield from places(document["warnings"])


def tests_section(document: dict[str, Any]) -> Iterator[str]:
    """Say what the tests said."""
    yield from ("## Tests", "")
    words = {"passed": "All tests passed.", "failed": "**Tests failed.**"}
    yield words.get(document["status"], f"{document['status'].replace('_', ' ').capitalize()}.")
    if document["ran"] is None:
        yield document["reason"]
    else:
        yield (
            f"{document['ran']} ran with {document['framework']}, {document['failed']} failed,"
            f" {document['skipped']} skipped."
        )
    for name in document["failing"][:LISTED]:
        yield f"* {code(name)}"
    if document["status"] == "failed":
        yield from ("", "~~~text", document["output_tail"].replace("~~~", "~ ~ ~"), "~~~")


def lint_section(document: dict[str, Any]) -> Iterator[str]:
    """Say what ruff found, or that it is not there."""
    yield from ("## Lint", "", document["reason"])
    if document["by_rule"]:
        yield from ("", "| rule | findings |", "|---|---:|")
        yield from (f"| {cell(rule)} | {count} |" for rule, count in document["by_rule"].items())
        yield ""
        yield from places(document["findings"])


def dependencies_section(document: dict[str, Any]) -> Iterator[str]:
    """List what is declared and what is imported."""
    yield from ("## Dependencies", "")
    yield from ("| declared | version | where |", "|---|---|---|")
    for row in document["declared"]:
        yield f"| {cell(row['name'])} | {cell(row['version'])} | {cell(row['file'])} |"
    imported = ", ".join(f"{code(row['package'])} ({row['files']})" for row in document["imported"])
    yield ""
    yield f"Imported packages that are not Python's own, with the number of files: {imported}."


def places(rows: list[dict[str, Any]]) -> Iterator[str]:
    """List places in files, the first ones."""
    for row in rows[:LISTED]:
        yield f"* {code(row['path'] + ':' + str(row['line']))} {cell(row['message'])}"
    if len(rows) > LISTED:
        yield f"* … and {len(rows) - LISTED} more"


def cell(text: object) -> str:
    """Make text harmless inside a table or a list."""
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Show text as code."""
    return "`" + text.replace("`", "'").replace("\n", " ") + "`"


SECTIONS: dict[str, Section] = {
    "inventory": inventory_section,
    "compile": compile_section,
    "tests": tests_section,
    "lint": lint_section,
    "dependencies": dependencies_section,
}


if __name__ == "__main__":
    main()
