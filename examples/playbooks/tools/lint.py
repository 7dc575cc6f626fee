"""Check a repository with ruff, where ruff is installed; say so where it is not."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from repository_files import write_json

SHOWN = 200


def main() -> int:
    """Check the current directory; exit 1 when ruff finds something or cannot read its settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    ruff = find_ruff()
    report = check(ruff) if ruff else blank("absent", "ruff is not installed; nothing was checked.")
    print(f"ruff: {report['status']}. {report['reason']}".rstrip(), flush=True)
    write_json(options.output, report)
    return 1 if report["status"] in ("findings", "error") else 0


def find_ruff() -> list[str]:
    """Find ruff beside this interpreter, or on the PATH."""
    if importlib.util.find_spec("ruff") is not None:
        return [sys.executable, "-m", "ruff"]
    program = shutil.which("ruff")
    return [program] if program else []


def blank(status: str, reason: str) -> dict[str, Any]:
    """Make a report without findings."""
    return {"status": status, "reason": reason, "count": 0, "by_rule": {}, "findings": []}


def check(ruff: list[str]) -> dict[str, Any]:
    """Run ruff with the repository's own settings."""
    answer = subprocess.run(  # noqa: S603 (the ruff that was found)
        [*ruff, "check", "--no-cache", "--output-format", "json", "."],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode not in (0, 1):
        print(answer.stderr, flush=True)
        return blank("error", answer.stderr.strip()[-2000:])
    found = [describe(entry) for entry in json.loads(answer.stdout)]
    for finding in found[:SHOWN]:
        print(f"{finding['path']}:{finding['line']}: {finding['rule']} {finding['message']}")
    rules = Counter(str(finding["rule"]) for finding in found)
    status = "findings" if found else "clean"
    return blank(status, f"{len(found)} findings.") | {
        "count": len(found),
        "by_rule": dict(rules.most_common()),
        "findings": found[:SHOWN],
    }


def describe(entry: dict[str, Any]) -> dict[str, Any]:
    """Take what a reader needs from one of ruff's entries."""
    path = Path(entry["filename"])
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return {
        "path": path.as_posix(),
        "line": entry["location"]["row"],
        "rule": entry["code"] or "syntax",
        "message": entry["message"],
    }


if __name__ == "__main__":
    sys.exit(main())
