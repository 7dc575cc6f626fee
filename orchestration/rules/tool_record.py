"""Read the tool-call record: which calls verify anything, what they prove, and the marks they earn.

A mark "agent verified" needs a command that builds, tests, lints or runs, and whose exit code is
its own: behind a pipe, `;` or `||` it is another command's. Reading a file earns nothing.
Source: DESIGN section 8 ("Evidence grades", "Marks"), source document 003.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

RERUN, OBSERVED, SELF_REPORTED, NONE = "rerun", "observed", "self_reported", "none"
GRADES = (NONE, SELF_REPORTED, OBSERVED, RERUN)
"""Evidence grades, weakest first."""
INDEPENDENT_OK, INDEPENDENT_FAILED = "independently_verified", "independently_failed"
AGENT_VERIFIED, NOT_VERIFIED = "agent_verified", "not_verified"
BY = "by"
"""Key of a mark that another agent than the work's own earned: its name."""
SHOWN_COMMAND = 80
MOST_MARKS = 20
"""Marks of one output; the newest are kept."""


class Check(StrEnum):
    """What a verifying command does."""

    BUILD = "build"
    TESTS = "tests"
    LINT = "lint"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded tool call. Shape: `grade` observed (a harness recorded it) or self_reported."""

    id: str
    tool: str
    command: str
    outcome: str
    exit_code: int | None
    output_tail: str
    grade: str
    attempt: int = 1

    @property
    def is_ok(self) -> bool:
        """Whether it succeeded; a harness that tells no exit code says so by its event."""
        return self.outcome == "ok" and self.exit_code in (None, 0)


_OPERATORS = frozenset({"|", "||", ";", "&", "|&", ";;", "(", ")", "\n"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_WRAPPERS = frozenset(
    {"env", "time", "nice", "sudo", "command", "exec", "npx", "bunx", "xvfb-run", "stdbuf"}
)
_RUNNERS = frozenset({("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("bundle", "exec")})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_IDLE = frozenset(
    {"--version", "--help", "-h", "-V", "version", "help", "--collect-only", "--co", "--dry-run",
     "--list-tests", "--listTests"}
)  # fmt: skip
"""Arguments with which a program says something about itself and checks nothing."""
_DRY_RUNS = frozenset({"make", "gmake", "ninja", "bash", "sh", "zsh", "dash", "ksh"})
"""Programs whose `-n` runs nothing; elsewhere it is something else, as the workers of pytest."""
_TRIVIAL = frozenset(
    {"true", ":", "echo", "printf", "exit", "sleep", "pwd", "date", "whoami", "cat", "head", "tail",
     "less", "cd", "export", "set", "yes"}
)  # fmt: skip
"""Commands whose success proves no claim."""

_PROGRAMS: Mapping[str, Check] = {
    "pytest": Check.TESTS, "py.test": Check.TESTS, "tox": Check.TESTS, "nox": Check.TESTS,
    "jest": Check.TESTS, "vitest": Check.TESTS, "mocha": Check.TESTS, "ctest": Check.TESTS,
    "phpunit": Check.TESTS, "rspec": Check.TESTS,
    "tsc": Check.BUILD, "gcc": Check.BUILD, "g++": Check.BUILD, "clang": Check.BUILD,
    "cc": Check.BUILD, "javac": Check.BUILD, "ninja": Check.BUILD,
    "ruff": Check.LINT, "flake8": Check.LINT, "pylint": Check.LINT, "mypy": Check.LINT,
    "pyright": Check.LINT, "eslint": Check.LINT, "golangci-lint": Check.LINT,
    "shellcheck": Check.LINT, "yamllint": Check.LINT, "markdownlint": Check.LINT,
}  # fmt: skip
_VERBS: Mapping[str, Mapping[str, Check]] = {
    "go": {"build": Check.BUILD, "test": Check.TESTS, "vet": Check.LINT, "run": Check.RUN},
    "cargo": {"build": Check.BUILD, "check": Check.BUILD, "test": Check.TESTS,
              "clippy": Check.LINT, "run": Check.RUN},
    "dotnet": {"build": Check.BUILD, "test": Check.TESTS, "run": Check.RUN},
    "bun": {"build": Check.BUILD, "test": Check.TESTS},
    "deno": {"check": Check.BUILD, "test": Check.TESTS, "lint": Check.LINT, "run": Check.RUN},
    "npm": {"test": Check.TESTS, "t": Check.TESTS, "start": Check.RUN},
    "yarn": {"build": Check.BUILD, "test": Check.TESTS, "lint": Check.LINT},
    "pnpm": {"build": Check.BUILD, "test": Check.TESTS, "lint": Check.LINT},
    "make": {"": Check.BUILD, "all": Check.BUILD, "build": Check.BUILD, "test": Check.TESTS,
             "tests": Check.TESTS, "check": Check.TESTS, "lint": Check.LINT, "run": Check.RUN},
    "mvn": {"compile": Check.BUILD, "package": Check.BUILD, "test": Check.TESTS,
            "verify": Check.TESTS},
    "gradle": {"build": Check.BUILD, "test": Check.TESTS, "run": Check.RUN},
    "gradlew": {"build": Check.BUILD, "test": Check.TESTS, "run": Check.RUN},
    "docker": {"build": Check.BUILD},
}  # fmt: skip
_SCRIPTS = frozenset({"npm", "yarn", "pnpm", "bun"})
_MODULES: Mapping[str, Check] = {
    "pytest": Check.TESTS, "unittest": Check.TESTS, "doctest": Check.TESTS,
    "py_compile": Check.BUILD, "compileall": Check.BUILD, "build": Check.BUILD,
    "ruff": Check.LINT, "flake8": Check.LINT, "mypy": Check.LINT,
}  # fmt: skip
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?\Z|pypy\d?\Z")


def unwrap_shell(command: str) -> str:
    """Return what a shell was given to run: `bash -lc 'go test ./...'` is `go test ./...`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) < 3 or PurePosixPath(words[0]).name not in _SHELLS:
        return command
    flags = words[1:-1]
    given = all(word.startswith("-") for word in flags) and any("c" in word for word in flags)
    return words[-1] if given else command


def segments(command: str) -> list[list[str]] | None:
    """Split a command line at `&&`; None where an exit code would be another command's.

    Shape: the words of each segment, without redirections.
    """
    lexer = shlex.shlex(unwrap_shell(command.strip()), posix=True, punctuation_chars=True)
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    parts: list[list[str]] = [[]]
    is_target = False
    try:
        for word in lexer:
            if set(word) <= set("<>&") and set(word) & set("<>"):
                # A redirection: its number stands before it, its target after it.
                if parts[-1] and parts[-1][-1].isdigit():
                    parts[-1].pop()
                is_target = True
            elif word == "&&":
                parts.append([])
            elif word in _OPERATORS or "\n" in word or set(word) <= {"|", ";", "&", "(", ")"}:
                return None
            elif is_target:
                is_target = False
            else:
                parts[-1].append(word)
    except ValueError:
        return None
    return [part for part in parts if part]


def check_of(command: str) -> Check | None:
    """Say what a command line verifies, or None: then its success earns no mark."""
    found = [kind for words in segments(command) or () if (kind := _check_of_words(words))]
    return found[-1] if found else None


def _check_of_words(words: Sequence[str]) -> Check | None:
    rest = _without_wrappers(words)
    if not rest or any(word in _IDLE for word in rest[1:]):
        return None
    name, arguments = PurePosixPath(rest[0]).name, rest[1:]
    if name in _DRY_RUNS and "-n" in arguments:
        return None
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    if name in _VERBS:
        return _check_of_verb(name, arguments)
    if _PYTHON.match(name):
        return _check_of_python(arguments)
    is_script = name in _SHELLS | {"node", "ruby", "perl"} and arguments
    if is_script and arguments[0] == "--test":
        return Check.TESTS
    if is_script and not arguments[0].startswith("-"):
        return Check.RUN
    return Check.RUN if rest[0].startswith(("./", "../")) else None


def _without_wrappers(words: Sequence[str]) -> Sequence[str]:
    """Drop what only starts another program: assignments, env, timeout, uv run."""
    rest = list(words)
    while rest:
        name = PurePosixPath(rest[0]).name
        if _ASSIGNMENT.match(rest[0]) or name in _WRAPPERS:
            rest = rest[1:]
        elif name == "timeout" and len(rest) > 1:
            rest = [word for word in rest[1:] if not word.startswith("-")][1:]
        elif tuple(rest[:2]) in _RUNNERS:
            rest = rest[2:]
        else:
            return rest
    return rest


def _check_of_verb(name: str, arguments: Sequence[str]) -> Check | None:
    plain = [word for word in arguments if not word.startswith("-") and "=" not in word]
    verb = plain[0] if plain else ""
    if name in _SCRIPTS and verb == "run" and len(plain) > 1:
        known = {"build": Check.BUILD, "test": Check.TESTS, "lint": Check.LINT}
        return known.get(plain[1].partition(":")[0], Check.RUN if name == "bun" else None)
    return _VERBS[name].get(verb)


def _check_of_python(arguments: Sequence[str]) -> Check | None:
    if len(arguments) > 1 and arguments[0] == "-m":
        return _MODULES.get(arguments[1].partition(".")[0], Check.RUN)
    if arguments and not arguments[0].startswith("-"):
        return Check.RUN
    return None


def proves_nothing(command: str) -> bool:
    """Whether a command cannot support a claim: trivial, or its exit code is not its own."""
    parts = segments(command)
    if not parts:
        return True
    names = [PurePosixPath(rest[0]).name for one in parts if (rest := _without_wrappers(one))]
    return all(name in _TRIVIAL for name in names)


def normal_command(command: str) -> str:
    """Write a command so that two spellings of one compare equal."""
    parts = segments(command)
    if not parts:
        return " ".join(command.split())
    return " && ".join(shlex.join(part) for part in parts)


# --- Marks ----------------------------------------------------------------------------------------


def mark(
    kind: str, code: str, *, grade: str, evidence: Iterable[str] = (), **params: Any
) -> dict[str, Any]:
    """Make a mark as data. Shape: kind, code with params, English text, grade, evidence ids."""
    return {
        "kind": kind,
        "code": code,
        "params": params,
        "text": ENGLISH[code] % params,
        "grade": grade,
        "evidence": list(evidence),
    }


ENGLISH: Mapping[str, str] = {
    "build_passed": "builds (exit 0)",
    "tests_passed": "tests pass (exit 0)",
    "lint_passed": "lint is clean (exit 0)",
    "run_passed": "runs (exit 0)",
    "command_failed": "command failed (exit %(exit_code)s): %(command)s",
    "command_interrupted": "command interrupted: %(command)s",
    "command_passed": "passed: %(command)s",
    "check_failed": "failed: %(command)s",
    "file_exists": "file exists: %(path)s",
    "file_missing": "file is missing or empty: %(path)s",
    "claim_contradicted": "contradicted: %(claim)s",
    "claim_failed": "contradicted: %(claim)s (exit %(exit_code)s)",
    "count_contradicted": "contradicted: %(claim)s (%(passed)s passed, %(failed)s failed)",
    "claim_builds": "builds",
    "claim_tests": "tests pass",
    "claim_counted": "tests: %(passed)s passed, %(failed)s failed",
    "own_tests": "code and its tests were changed by the same hand: %(paths)s",
    "fewer_tests": "%(now)s tests ran, %(before)s in an earlier run of the same command",
    "unchecked_no_workspace": "not checked: %(claim)s (this project has no workspace)",
    "unchecked_no_sandbox": "not checked: %(claim)s (no sandbox for code that agents wrote)",
    "unchecked_outside": "not checked: %(claim)s (outside of the workspace)",
    "unchecked_unreadable": "not checked: %(claim)s (it cannot be read)",
    "unchecked_no_way": "not checked: %(claim)s (nothing here says how)",
    "unchecked_tool_missing": "not checked: %(claim)s (%(tool)s is not installed here)",
    "unchecked_not_finished": "not checked: %(claim)s (%(command)s did not finish)",
    "unchecked_no_tests": "not checked: %(claim)s (%(command)s found no test)",
    "unchecked_environment": "not checked: %(claim)s (this machine lacks something it needs)",
    "unchecked_no_counts": "not checked: %(claim)s (our run does not tell how many tests it ran)",
    "reasoning_only": "the above rests on reasoning; no verifying command was run",
}
"""What each mark says; pages and the API translate by the code."""


def agent_marks(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """List the marks that an agent's recorded calls earn, in their order, each once.

    Every verifying command that succeeded, and every command that failed.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for call in calls:
        if not call.command:
            continue
        shown = unwrap_shell(call.command)
        kind = check_of(call.command)
        if not call.is_ok:
            key = ("failed", normal_command(call.command))
            made = _failed_mark(call, " ".join(shown.split())[:SHOWN_COMMAND])
        elif kind is not None:
            # Two runs of the tests are one statement: that they pass.
            key = (kind.value, "")
            made = mark(AGENT_VERIFIED, f"{kind}_passed", grade=call.grade, evidence=[call.id])
        else:
            continue
        known = found.pop(key, None)
        if known is not None:
            made["evidence"] = [*known["evidence"], *made["evidence"]]
            made["grade"] = max(known["grade"], made["grade"], key=GRADES.index)
        found[key] = made
    return list(found.values())[-MOST_MARKS:]


def _failed_mark(call: Call, shown: str) -> dict[str, Any]:
    if call.outcome == "interrupted":
        return mark(AGENT_VERIFIED, "command_interrupted", grade=call.grade, evidence=[call.id],
                    command=shown)  # fmt: skip
    code = call.exit_code if call.exit_code is not None else "?"
    return mark(AGENT_VERIFIED, "command_failed", grade=call.grade, evidence=[call.id],
                exit_code=code, command=shown)  # fmt: skip


def run_marks(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the marks of commands that we ran ourselves. Shape: records of our own runner."""
    return [run_mark(run, shlex.join(run["argv"])) for run in list(runs)[-MOST_MARKS:]]


def run_mark(run: Mapping[str, Any], words: str) -> dict[str, Any]:
    """The independent mark of one command that we ran."""
    shown = words[:SHOWN_COMMAND]
    if run["ok"]:
        return mark(INDEPENDENT_OK, "command_passed", grade=RERUN, command=shown)
    return mark(INDEPENDENT_FAILED, "check_failed", grade=RERUN, command=shown)


def unverified_mark() -> dict[str, Any]:
    """The mark of what nothing was run for."""
    return mark(NOT_VERIFIED, "reasoning_only", grade=NONE)
