"""Compile every Python source of a repository, without leaving .pyc files in it."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from repository_files import list_python_files, write_json


def main() -> int:
    """Compile the current directory; exit 1 when a file does not compile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--leave-out", action="append", default=[])
    options = parser.parse_args()
    paths = list_python_files(Path.cwd(), options.leave_out)
    failures, warned = [], []
    for path in paths:
        failure, notes = compile_file(path)
        warned += notes
        if failure is not None:
            failures.append(failure)
            print(f"{failure['path']}:{failure['line']}: {failure['message']}", flush=True)
    print(f"{len(paths) - len(failures)} of {len(paths)} files compile", flush=True)
    write_json(options.output, {"compiled": len(paths), "failures": failures, "warnings": warned})
    return 1 if failures else 0


def compile_file(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Compile one file. Shape: what stops it, if anything, and what the compiler warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            message = getattr(error, "msg", None) or str(error)
            line = getattr(error, "lineno", None) or 0
            return {"path": path.as_posix(), "line": line, "message": message}, []
    notes = [
        {"path": path.as_posix(), "line": note.lineno, "message": str(note.message)}
        for note in caught
    ]
    return None, notes


if __name__ == "__main__":
    sys.exit(main())
