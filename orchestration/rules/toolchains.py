"""How a workspace is built and tested, told from its files.

Source: DESIGN section 8 (Go, Node/Bun, Python, Make, and policy-defined).
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from orchestration.contracts.checks import ToolchainRule

Argv = tuple[str, ...]
ReadText = Callable[[str], str]

COMPILE_ALL = (
    "import os, sys\n"
    "bad = 0\n"
    "skip = {'.git', '.venv', 'venv', 'node_modules', '__pycache__', '.tox'}\n"
    "for folder, names, files in os.walk('.'):\n"
    "    names[:] = [name for name in names if name not in skip]\n"
    "    for name in files:\n"
    "        if name.endswith('.py'):\n"
    "            path = os.path.join(folder, name)\n"
    "            try:\n"
    "                compile(open(path, 'rb').read(), path, 'exec')\n"
    "            except (SyntaxError, ValueError) as error:\n"
    "                bad += 1\n"
    "                print(path, error)\n"
    "sys.exit(1 if bad else 0)\n"
)
_TARGET = re.compile(r"^([A-Za-z][\w.-]{0,60})\s*:(?!=)", re.MULTILINE)
_NO_TESTS_YET = "no test specified"
_ENVIRONMENT = re.compile(
    r"No module named|Cannot find module|ERR_MODULE_NOT_FOUND|command not found|not recognized"
    r"|dial tcp|Temporary failure in name resolution|Could not resolve|getaddrinfo|EAI_AGAIN"
    r"|ENOTFOUND|Network is unreachable|cannot find package|no required module provides"
    r"|missing go\.sum entry|module lookup disabled|EROFS|Read-only file system"
    r"|Operation not permitted|not found\s*$|^make(?:\[\d+\])?: \S+: No such file or directory$",
    re.MULTILINE,
)
_OUTAGE = re.compile(
    r"dial tcp|Temporary failure in name resolution|Could not resolve host|getaddrinfo|EAI_AGAIN"
    r"|ENOTFOUND|Network is unreachable|Name or service not known"
)
NO_COMMAND = 127
"""What a shell exits with when it finds no program of that name."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One way to build and test. Shape: alternatives in order; the first whose tool is there."""

    name: str
    build: tuple[Argv, ...] = ()
    test: tuple[Argv, ...] = ()


def detect_toolchains(
    names: Collection[str], read: ReadText, extra: Sequence[ToolchainRule] = ()
) -> list[Toolchain]:
    """List the toolchains of a workspace from the names in its root.

    What the policy defines comes first and replaces one of ours of the same name; Make speaks for
    what no other can build or test.
    """
    found = {one.name: one for one in _of_policy(names, extra)}
    for ours in (_go(names), _node(names, read), _python(names)):
        if ours is not None:
            found.setdefault(ours.name, ours)
    made = _make(names, read)
    if made is not None and made.name not in found:
        has_build = any(one.build for one in found.values())
        has_test = any(one.test for one in found.values())
        found[made.name] = Toolchain(
            "make", () if has_build else made.build, () if has_test else made.test
        )
    return list(found.values())


def is_environment_failure(output: str) -> bool:
    """Say whether a failing run lacked something of the machine rather than being wrong."""
    return _ENVIRONMENT.search(output) is not None


def is_outage(outcome: str, output: str) -> bool:
    """Say whether a failing planned command met a network that is not there for now.

    Narrower than `is_environment_failure`: a module or a file that is missing may be what the work
    left out, so such a run counts as a failed check.
    """
    return outcome == "failed" and _OUTAGE.search(output) is not None


def lacks_program(argv: Sequence[str], outcome: str, exit_code: int | None, output: str) -> bool:
    """Say whether a planned command names a program that this machine does not have.

    That is no outage: it does not come back by waiting, and is a fault of the plan or the machine.
    """
    if outcome == "not_found":
        return "/" not in argv[0]
    return outcome == "failed" and exit_code == NO_COMMAND and "not found" in output


def _of_policy(names: Collection[str], extra: Sequence[ToolchainRule]) -> Iterator[Toolchain]:
    for one in extra:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in one.files for name in names):
            yield Toolchain(
                one.name,
                (tuple(one.build),) if one.build else (),
                (tuple(one.test),) if one.test else (),
            )


def _go(names: Collection[str]) -> Toolchain | None:
    if "go.mod" not in names and not any(name.endswith(".go") for name in names):
        return None
    return Toolchain("go", (("go", "build", "./..."),), (("go", "test", "-v", "./..."),))


def _node(names: Collection[str], read: ReadText) -> Toolchain | None:
    if "package.json" not in names:
        return None
    try:
        scripts = json.loads(read("package.json")).get("scripts") or {}
    except (ValueError, AttributeError, RecursionError):
        scripts = {}
    if not isinstance(scripts, dict):
        scripts = {}
    # A script is the same whoever starts it: the other runner stands in where one is missing.
    uses_bun = bool({"bun.lock", "bun.lockb"} & set(names))
    runners = ("bun", "npm") if uses_bun else ("npm", "bun")
    build = tuple((one, "run", "build") for one in runners) if "build" in scripts else ()
    has_tests = "test" in scripts and _NO_TESTS_YET not in str(scripts["test"])
    if has_tests:
        return Toolchain("node", build, tuple((one, "run", "test") for one in runners))
    alone = (("bun", "test"), ("node", "--test"))
    return Toolchain("node", build, alone if uses_bun else alone[1:])


def _python(names: Collection[str]) -> Toolchain | None:
    signs = {"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini"}
    if not signs & set(names) and not any(name.endswith(".py") for name in names):
        return None
    return Toolchain(
        "python",
        (("python3", "-I", "-S", "-c", COMPILE_ALL),),
        (
            ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            ("python3", "-m", "unittest", "-q"),
        ),
    )


def _make(names: Collection[str], read: ReadText) -> Toolchain | None:
    file = next((name for name in ("GNUmakefile", "makefile", "Makefile") if name in names), None)
    if file is None:
        return None
    targets = set(_TARGET.findall(read(file)))
    build = next((name for name in ("build", "all") if name in targets), None)
    test = next((name for name in ("test", "check") if name in targets), None)
    return Toolchain("make", (("make", build),) if build else (), (("make", test),) if test else ())
