"""Run a repository's own tests and write down what they said.

The command comes from `[tool.countersign] test_command` in pyproject.toml where there is one
(a list; `{python}` stands for this interpreter). Else pytest is used where the repository is set up
for it, else unittest. Tests that need pytest where it is not installed are reported as not run.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from repository_files import list_python_files, read_pyproject, write_json

TAIL_LINES = 60
RAN = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)
COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)")
FAILING = re.compile(r"^(?:FAIL|ERROR): .*\((.+)\)$", re.MULTILINE)
IMPORTS_PYTEST = re.compile(r"^\s*(?:import|from) pytest\b", re.MULTILINE)
NO_TESTS_EXIT = 5


def main() -> int:
    """Test the current directory; exit as the tests do, and with 0 where there are none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--leave-out", action="append", default=[])
    options = parser.parse_args()
    root = Path.cwd()
    tests = [path for path in list_python_files(root, options.leave_out) if is_test(path)]
    report = choose_and_run(root, tests)
    print(f"tests: {report['status']}. {report['reason']}".rstrip(), flush=True)
    write_json(options.output, report)
    return 1 if report["status"] == "failed" else 0


def is_test(path: Path) -> bool:
    """Say whether a file looks like tests."""
    return path.name.startswith("test_") or path.stem.endswith("_test")


def choose_and_run(root: Path, tests: list[Path]) -> dict[str, Any]:
    """Find out how this repository is tested, and do it."""
    wanted = read_pyproject(root).get("tool", {}).get("countersign", {}).get("test_command")
    if wanted:
        return run_own_command([str(word) for word in wanted])
    if not tests:
        return blank("none", "No test file was found.", "none")
    if needs_pytest(root, tests):
        if not is_installed("pytest"):
            reason = f"The tests need pytest, which is not installed for {sys.executable}."
            return blank("not_run", reason, "pytest")
        return run_pytest()
    return run_unittest(root, tests)


def needs_pytest(root: Path, tests: list[Path]) -> bool:
    """Say whether the repository is set up for pytest, or its tests import it."""
    if "pytest" in read_pyproject(root).get("tool", {}):
        return True
    settings = {"pytest.ini": "[pytest]", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
    for name, section in settings.items():
        if (root / name).is_file() and section in (root / name).read_text("utf-8", "replace"):
            return True
    return any(IMPORTS_PYTEST.search(path.read_text("utf-8", "replace")) for path in tests)


def blank(status: str, reason: str, framework: str) -> dict[str, Any]:
    """Make a report without counts: unknown stays unknown."""
    return {
        "status": status,
        "reason": reason,
        "framework": framework,
        "command": [],
        "ran": None,
        "failed": None,
        "skipped": None,
        "failing": [],
        "output_tail": "",
    }


def run_own_command(wanted: list[str]) -> dict[str, Any]:
    """Run the command that the repository names; only its exit code is understood."""
    if wanted[:2] == ["{python}", "-m"] and not is_installed(wanted[2]):
        reason = f"The tests need {wanted[2]}, which is not installed for {sys.executable}."
        return blank("not_run", reason, "own")
    code, output = stream([word.replace("{python}", sys.executable) for word in wanted])
    status = "failed" if code else "passed"
    return blank(status, f"Exit code {code}.", "own") | {
        "command": wanted,
        "output_tail": tail(output),
    }


def is_installed(module: str) -> bool:
    """Say whether this interpreter could run the module."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def run_pytest() -> dict[str, Any]:
    """Run pytest and read its JUnit report."""
    with tempfile.TemporaryDirectory() as scratch:
        junit = Path(scratch) / "junit.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
        command = [sys.executable, "-m", "pytest", *options]
        code, output = stream(command)
        # what pytest wrote a moment ago is no foreign XML
        suites = ElementTree.parse(junit).getroot() if junit.exists() else None  # noqa: S314
    report = blank("failed" if code else "passed", f"Exit code {code}.", "pytest")
    report |= {"command": command[1:4], "output_tail": tail(output)}
    if suites is None:
        return report | {"status": "failed"}
    counts = {
        name: sum(int(suite.get(name, 0)) for suite in suites.iter("testsuite"))
        for name in ("tests", "failures", "errors", "skipped")
    }
    failing = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in suites.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    report |= {
        "ran": counts["tests"],
        "failed": counts["failures"] + counts["errors"],
        "skipped": counts["skipped"],
        "failing": failing,
    }
    return report | ({"status": "none"} if code == NO_TESTS_EXIT else {})


def run_unittest(root: Path, tests: list[Path]) -> dict[str, Any]:
    """Run unittest's discovery and read what it prints."""
    start = "tests" if (root / "tests").is_dir() else "."
    top = "." if start == "." or (root / start / "__init__.py").exists() else start
    pattern = "test_*.py" if any(path.name.startswith("test_") for path in tests) else "*_test.py"
    options = ["discover", "-v", "-s", start, "-t", top, "-p", pattern]
    command = [sys.executable, "-m", "unittest", *options]
    code, output = stream(command)
    ran = RAN.search(output)
    counts = {name: int(number) for name, number in COUNT.findall(output)}
    wrong = ("failures", "errors", "unexpected successes")
    report = blank("failed" if code else "passed", f"Exit code {code}.", "unittest")
    report |= {
        "command": command[1:],
        "ran": int(ran[1]) if ran else None,
        "failed": sum(counts.get(name, 0) for name in wrong),
        "skipped": counts.get("skipped", 0),
        "failing": FAILING.findall(output),
        "output_tail": tail(output),
    }
    if report["ran"] == 0 and not report["failed"]:
        report |= {"status": "none", "reason": "unittest found no test."}
    return report


def stream(command: list[str]) -> tuple[int, str]:
    """Run a command, show its output while it comes, and keep it."""
    sources = [path for path in ("src", ".") if Path(path).is_dir()]
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in sources),
    }
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 (the tests' own command)
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def tail(output: str) -> str:
    """Keep the end of the output."""
    return "\n".join(output.splitlines()[-TAIL_LINES:])


if __name__ == "__main__":
    sys.exit(main())
