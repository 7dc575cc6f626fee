"""Write an inventory of a repository: every file with its size, lines and sha-256."""

from __future__ import annotations

import argparse
import ast
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from repository_files import list_files, write_json


def main() -> None:
    """Inventory the current directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--leave-out", action="append", default=[])
    options = parser.parse_args()
    root = Path.cwd()
    rows = [describe_file(root, path) for path in list_files(root, options.leave_out)]
    kinds = Counter(str(row["kind"]) for row in rows)
    document = {
        "files": rows,
        "totals": {
            "files": len(rows),
            "bytes": sum(row["bytes"] for row in rows),
            "lines": sum(row["lines"] for row in rows),
            "by_kind": dict(kinds.most_common()),
        },
    }
    for kind, count in kinds.most_common(10):
        print(f"{count:6} {kind}")
    print(f"{len(rows):6} files in all", flush=True)
    write_json(options.output, document)


def describe_file(root: Path, path: Path) -> dict[str, Any]:
    """Describe one file. Binary files have no lines."""
    data = (root / path).read_bytes()
    row: dict[str, Any] = {
        "path": path.as_posix(),
        "kind": path.suffix.lstrip(".") or path.name,
        "bytes": len(data),
        "lines": 0 if b"\0" in data else len(data.splitlines()),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if path.suffix == ".py":
        row |= describe_python(data)
    return row


def describe_python(data: bytes) -> dict[str, Any]:
    """Count what a module defines; a module that does not parse says so."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError) as error:
        return {"syntax_error": str(error)}
    kinds = Counter(type(node) for node in ast.walk(tree))
    return {
        "classes": kinds[ast.ClassDef],
        "functions": kinds[ast.FunctionDef] + kinds[ast.AsyncFunctionDef],
    }


if __name__ == "__main__":
    main()
