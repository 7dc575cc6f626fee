"""How a workspace is built and tested, from its files."""

from __future__ import annotations

import pytest

from orchestration.contracts.checks import ToolchainRule
from orchestration.rules.toolchains import (
    detect_toolchains,
    is_environment_failure,
    is_outage,
    lacks_program,
)

FILES = {
    "Makefile": "X := 1\nbuild: main.c\n\tcc main.c\ntest:\n\ttrue\n",
    "package.json": '{"scripts": {"build": "tsc", "test": "jest"}}',
}


def words(*names: str, package: str = FILES["package.json"]) -> dict[str, list[str]]:
    """Name the first three words of each toolchain's build and test."""
    files = FILES | {"package.json": package}
    found = detect_toolchains(names, lambda name: files.get(name, ""))
    return {
        one.name: [" ".join(kind[0][:3]) if kind else "" for kind in (one.build, one.test)]
        for one in found
    }


def test_each_toolchain_is_told_from_its_files() -> None:
    assert words("go.mod", "main.go") == {"go": ["go build ./...", "go test -v"]}
    assert words("package.json") == {"node": ["npm run build", "npm run test"]}
    assert words("package.json", "bun.lock") == {"node": ["bun run build", "bun run test"]}
    assert words("app.py") == {"python": ["python3 -I -S", "python3 -m pytest"]}
    assert words("Makefile") == {"make": ["make build", "make test"]}
    assert words("README.md") == {}


def test_make_speaks_only_for_what_no_other_can() -> None:
    assert words("go.mod", "Makefile")["make"] == ["", ""]


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"scripts": 3}', "[" * 100_000])
def test_broken_package_file_is_no_fault(text: str) -> None:
    assert words("package.json", package=text).keys() == {"node"}


def test_the_placeholder_of_npm_is_no_test() -> None:
    package = '{"scripts": {"test": "echo Error: no test specified && exit 1"}}'
    assert words("package.json", package=package) == {"node": ["", "node --test"]}


def test_policy_comes_first_and_replaces_ours() -> None:
    rule = ToolchainRule.model_validate({"name": "go", "files": ["*.mod"], "build": "task build"})
    found = detect_toolchains(["go.mod"], lambda _: "", [rule])
    assert [(one.name, one.build, one.test) for one in found] == [("go", (("task", "build"),), ())]


def test_what_the_machine_lacks_is_told_from_what_is_wrong() -> None:
    assert is_environment_failure("dial tcp: lookup proxy.golang.org")
    assert is_environment_failure("ModuleNotFoundError: No module named 'numpy'")
    assert not is_environment_failure("AssertionError: 1 != 2")


Met = tuple[list[str], str, int | None, str]
DOWN: list[Met] = [
    (["curl"], "failed", 6, "curl: (6) Could not resolve host: example.org"),
    (["go"], "failed", 1, "dial tcp: lookup proxy.golang.org"),
]
LACKING: list[Met] = [
    (["nosuchtool"], "not_found", None, ""),
    (["sh"], "failed", 127, "sh: 1: nosuchtool: not found"),
]
ANSWERED: list[Met] = [
    (["./build.sh"], "not_found", None, ""),
    (["sh"], "failed", 1, "user 7 not found"),
    (["pytest"], "failed", 1, "ModuleNotFoundError: No module named 'ours'"),
    (["sleep"], "timed_out", None, "Could not resolve host"),
]


@pytest.mark.parametrize("met", DOWN)
def test_an_outage_is_seen(met: Met) -> None:
    assert is_outage(met[1], met[3])
    assert not lacks_program(*met)


@pytest.mark.parametrize("met", LACKING)
def test_a_program_that_is_not_there_is_no_outage(met: Met) -> None:
    assert lacks_program(*met)
    assert not is_outage(met[1], met[3])


@pytest.mark.parametrize("met", ANSWERED)
def test_a_failed_check_is_neither(met: Met) -> None:
    assert not is_outage(met[1], met[3])
    assert not lacks_program(*met)
