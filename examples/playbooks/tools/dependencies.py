"""List what a repository says it depends on, beside what its code really imports."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from repository_files import list_files, read_pyproject, write_json

REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*([^#;]*)")
REQUIREMENTS_FILE = re.compile(r"^requirements[^/]*\.(?:txt|in)$")


def main() -> None:
    """List the dependencies of the current directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--leave-out", action="append", default=[])
    options = parser.parse_args()
    root = Path.cwd()
    files = list_files(root, options.leave_out)
    declared = [*declared_in_pyproject(root), *declared_in_requirements(root, files)]
    imported = third_party_imports(root, [path for path in files if path.suffix == ".py"])
    for entry in declared:
        print(f"declared {entry['name']} {entry['version']} in {entry['file']}")
    print(f"{len(declared)} declared, {len(imported)} packages imported", flush=True)
    write_json(options.output, {"declared": declared, "imported": imported})


def declared_in_pyproject(root: Path) -> list[dict[str, str]]:
    """Read the dependencies of [project], optional ones included."""
    project = read_pyproject(root).get("project", {})
    groups = {"dependencies": project.get("dependencies", [])}
    groups |= project.get("optional-dependencies", {})
    return [
        entry
        for group, lines in groups.items()
        for entry in parse_requirements([str(line) for line in lines], f"pyproject.toml ({group})")
    ]


def declared_in_requirements(root: Path, files: list[Path]) -> list[dict[str, str]]:
    """Read every requirements file; lines that include another file are left to that file."""
    entries: list[dict[str, str]] = []
    for path in files:
        if REQUIREMENTS_FILE.match(path.name):
            lines = (root / path).read_text("utf-8", "replace").splitlines()
            entries += parse_requirements(lines, path.as_posix())
    return entries


def parse_requirements(lines: list[str], file: str) -> list[dict[str, str]]:
    """Read names and versions; comments, options and bare addresses name no package."""
    entries = []
    for line in lines:
        match = REQUIREMENT.match(line)
        if match and "://" not in line.split("@")[0]:
            version = match[3].strip().removesuffix("\\").strip()
            entries.append({"name": match[1], "version": version, "file": file})
    return entries


def third_party_imports(root: Path, files: list[Path]) -> list[dict[str, Any]]:
    """Count in how many files each foreign package is imported."""
    ours = {part for path in files for part in (path.stem, *path.parts[:-1])}
    users: Counter[str] = Counter()
    for path in files:
        names = imported_names((root / path).read_bytes())
        users.update(names - ours - sys.stdlib_module_names)
    return [{"package": name, "files": count} for name, count in sorted(users.items())]


def imported_names(data: bytes) -> set[str]:
    """Find the top-level names that a module imports; none when it does not parse."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


if __name__ == "__main__":
    main()
