"""What the tool-call record proves, and the marks it earns."""

from __future__ import annotations

import pytest

from orchestration.rules.tool_record import (
    ENGLISH,
    OBSERVED,
    SELF_REPORTED,
    Call,
    Check,
    agent_marks,
    check_of,
    normal_command,
    proves_nothing,
)


def call(
    command: str, *, code: int | None = 0, outcome: str = "", grade: str = OBSERVED, tail: str = ""
) -> Call:
    """One recorded call."""
    ended = outcome or ("ok" if not code else "failed")
    return Call(command, "Bash", command, ended, code, tail, grade)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("go build ./...", Check.BUILD),
        ("go test ./...", Check.TESTS),
        ("go run .", Check.RUN),
        ("go vet ./...", Check.LINT),
        ("python -m pytest -q", Check.TESTS),
        (".venv/bin/python -m pytest", Check.TESTS),
        ("python report.py --out r.csv", Check.RUN),
        ("python -m py_compile a.py", Check.BUILD),
        ("uv run pytest -x", Check.TESTS),
        ("CI=1 timeout 30 npm test", Check.TESTS),
        ("npm run build", Check.BUILD),
        ("make", Check.BUILD),
        ("make test", Check.TESTS),
        ("./run.sh", Check.RUN),
        ("cd server && go test ./... 2>&1", Check.TESTS),
        ("bash -lc 'cd server && go test ./...'", Check.TESTS),
        ("node --test", Check.TESTS),
        ("pytest -n 2 -q", Check.TESTS),
        ("python -m pytest -n auto", Check.TESTS),
        ("ruff check -n .", Check.LINT),
    ],
)
def test_build_test_lint_and_run_verify(command: str, kind: Check) -> None:
    assert check_of(command) is kind


@pytest.mark.parametrize(
    "command",
    [
        "cat main.go",
        "ls -l",
        "grep -r TODO .",
        "git status",
        "true",
        "pytest --version",
        "pytest --collect-only",
        "go version",
        "make -n test",
        "ninja -n",
        "bash -n run.sh",
        "python -c 'print(1)'",
        "",
        "echo 'go test ./...'",
        "unbalanced 'quote",
    ],
)
def test_reading_and_other_commands_verify_nothing(command: str) -> None:
    assert check_of(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "go test ./... | tail -5",
        "go test ./... || true",
        "go test ./...; true",
        "go test ./... &",
        "go test ./...\ntrue",
        "bash -c 'go test ./... | tee log'",
        "(go test ./...; exit 0)",
        "pytest |& cat",
    ],
)
def test_exit_code_behind_a_pipe_or_another_command_is_no_evidence(command: str) -> None:
    assert check_of(command) is None
    assert proves_nothing(command)
    assert agent_marks([call(command)]) == []


def test_failing_commands_are_marked_with_their_code() -> None:
    [mark] = agent_marks([call("go build ./...", code=1)])
    assert (mark["kind"], mark["code"]) == ("agent_verified", "command_failed")
    assert mark["params"] == {"exit_code": 1, "command": "go build ./..."}
    assert mark["text"] == "command failed (exit 1): go build ./..."


def test_success_without_an_exit_code_is_a_success_by_its_event() -> None:
    marks = agent_marks([call("go build ./...", code=None, outcome="ok"), call("go run .")])
    assert [one["code"] for one in marks] == ["build_passed", "run_passed"]


def test_two_runs_are_one_mark_of_the_better_grade() -> None:
    said = call("pytest -q", grade=SELF_REPORTED)
    [mark] = agent_marks([said, call("python -m pytest")])
    assert (mark["grade"], len(mark["evidence"])) == (OBSERVED, 2)


def test_word_of_the_agent_stays_self_reported() -> None:
    [mark] = agent_marks([call("pytest -q", grade=SELF_REPORTED)])
    assert mark["grade"] == SELF_REPORTED


def test_every_mark_has_a_text() -> None:
    calls = [call("pytest"), call("a", code=2), call("b", outcome="interrupted", code=None)]
    assert all(one["text"] and one["code"] in ENGLISH for one in agent_marks(calls))


def test_spelling_of_a_command_does_not_matter() -> None:
    assert normal_command("bash -lc 'pytest  -q'") == normal_command("pytest -q 2>&1")
