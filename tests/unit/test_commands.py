"""Commands: split like a shell would, never run by one."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from orchestration.contracts.commands import VerificationCommand, split_command


def words_of(split: Callable[[str], list[str]], text: str) -> list[str] | None:
    try:
        return split(text)
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("pytest -q", ["pytest", "-q"]),
        ("  python   -m pytest\ttests ", ["python", "-m", "pytest", "tests"]),
        ("pytest -k 'a and (b)'", ["pytest", "-k", "a and (b)"]),
        ('grep "a|b" x', ["grep", "a|b", "x"]),
        ("grep '|' x", ["grep", "|", "x"]),
        (r"echo a\;b \| c", ["echo", "a;b", "|", "c"]),
        ("pip install foo>=1.0", ["pip", "install", "foo>=1.0"]),
        ("curl http://h/?a=1&b=2", ["curl", "http://h/?a=1&b=2"]),
        ("sed s/a/b/;s/c/d/ f", ["sed", "s/a/b/;s/c/d/", "f"]),
        ("find . -name *.py", ["find", ".", "-name", "*.py"]),
        ("python -c 'print(1); print(2)'", ["python", "-c", "print(1); print(2)"]),
        ("echo '`date`' '$(date)'", ["echo", "`date`", "$(date)"]),
        ("echo ''", ["echo", ""]),
        ("测试 --输出=报告", ["测试", "--输出=报告"]),
        ("grep foo$ x", ["grep", "foo$", "x"]),
    ],
)
def test_a_command_line_becomes_argv(text: str, argv: list[str]) -> None:
    assert split_command(text) == argv


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("make | tee log", "'|'"),
        ("make; make test", "'make;'"),
        ("make && make test", "'&&'"),
        ("make || true", "'||'"),
        ("make > log", "'>'"),
        ("make >log", "'>log'"),
        ("make 2>&1", "'2>&1'"),
        ("make &>log", "'&>log'"),
        ("make &", "'&'"),
        ("cat < x", "'<'"),
        ("cat <<EOF", "'<<EOF'"),
        ("echo $(date)", "'$(date)'"),
        ('echo "now $(date)"', "'now $(date)'"),
        ("echo `date`", "'`date`'"),
        ("make\nmake test", "'a line break'"),
        ("FOO=1 make", "'FOO=1'"),
        ("'a b' ; c", "';'"),
    ],
)
def test_what_needs_a_shell_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(ValueError, match="without one") as caught:
        split_command(text)
    assert str(caught.value).startswith(named)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("echo 'a", "left open"),
        ('"', "open"),
        ("a \\", "backsl"),
    ],
)
def test_a_broken_line_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        split_command(text)


def test_words_are_those_of_the_standard_library() -> None:
    chosen = random.Random(20)
    for _ in range(5_000):
        text = "".join(chosen.choice("ab \t'\"\\=é") for _ in range(chosen.randrange(1, 14)))
        text = f"run {text}".strip()
        assert words_of(split_command, text) == words_of(shlex.split, text), text


@pytest.mark.parametrize(
    "document",
    ["make test", {"cmd": "make test"}, {"argv": ["make", "test"]}, {"cmd": ["make", "test"]}],
)
def test_every_spelling_is_the_same_command(document: object) -> None:
    command = VerificationCommand.model_validate(document)
    assert command.argv == ("make", "test")
    assert command.to_document() == {"argv": ["make", "test"]}
    assert command.text == "make test"
    assert command.expect_exit_code == 0


def test_all_fields_are_read() -> None:
    command = VerificationCommand.model_validate(
        {
            "cmd": "make test",
            "cwd": "./sub/",
            "timeout_seconds": 3,
            "expect_exit_code": 2,
            "expect_stdout_contains": "12 passed",
        }
    )
    assert (command.cwd, command.timeout_seconds, command.expect_exit_code) == ("sub", 3.0, 2)
    assert command.expect_stdout_contains == "12 passed"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"cmd": "a", "argv": ["a"]},
        {"argv": []},
        {"argv": [""]},
        {"argv": ["a", 1]},
        {"argv": "a b"},
        {"cmd": 3},
        3,
        ["make", "test"],
        {"cmd": "a", "cwd": "../x"},
        {"cmd": "a", "cwd": "/srv"},
        {"cmd": "a", "timeout_seconds": 0},
        {"cmd": "a", "timeout_seconds": -1},
        {"cmd": "a", "timeout_seconds": True},
        {"cmd": "a", "timeout_seconds": "3"},
        {"cmd": "a", "timeout_seconds": float("nan")},
        {"cmd": "a", "timeout_seconds": 10**9},
        {"cmd": "a", "expect_exit_code": 256},
        {"cmd": "a", "expect_exit_code": False},
    ],
)
def test_a_malformed_command_is_refused(document: object) -> None:
    with pytest.raises(ValidationError):
        VerificationCommand.model_validate(document)
