"""Real `go`, `node` and `bun` where the machine has them, else the small ones that answer alike.

Each test's name says which ran.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project
from orchestration.runner.sandbox import readable_places
from tests.factories import new_project
from tests.services.test_toolchains_run import claimed, found
from tests.services.toolchain_programs import install

pytestmark = pytest.mark.django_db

JS = "const {{ test }} = require('{tester}');\n{cases}"
GO = {
    "go.mod": "module example.com/app\n\ngo 1.18\n",
    "main.go": "package app\n",
}
GO_TESTS = 'package app\n\nimport "testing"\n\n'


def js(tester: str, *cases: str) -> str:
    return JS.format(tester=tester, cases="".join(f"{one}\n" for one in cases))


def node_files(*cases: str) -> dict[str, str]:
    return {"package.json": "{}\n", "a.test.js": js("node:test", *cases)}


def bun_files(*cases: str) -> dict[str, str]:
    return {"package.json": "{}\n", "bun.lock": "", "a.test.js": js("bun:test", *cases)}


def go_files(*cases: str) -> dict[str, str]:
    return GO | {"app_test.go": GO_TESTS + "".join(f"{one}\n" for one in cases)}


ONE = "test('one passes', () => {});"
TWO = "test('two passes', () => {});"
BROKEN = "test('two fails', () => { throw new Error('no'); });"
GO_ONE = "func TestOne(t *testing.T) {}"
GO_TWO = "func TestTwo(t *testing.T) {}"
GO_BROKEN = 'func TestTwo(t *testing.T) { t.Fatal("no") }'
TOOLS: Mapping[str, tuple[dict[str, str], dict[str, str], list[str]]] = {
    "go": (go_files(GO_ONE, GO_TWO), go_files(GO_ONE, GO_BROKEN), ["go", "test", "-v", "./..."]),
    "node": (node_files(ONE, TWO), node_files(ONE, BROKEN), ["node", "--test"]),
    "bun": (bun_files(ONE, TWO), bun_files(ONE, BROKEN), ["bun", "test"]),
}
IDS = [f"{name}-{'real' if shutil.which(name) else 'scripted'}" for name in TOOLS]


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One of the tools: the machine's own, else ours in front of the PATH."""
    name: str = request.param
    home = Path(tempfile.mkdtemp(prefix="tools-"))
    home.chmod(0o755)
    install(home, *(one for one in [name] if not shutil.which(one)))
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    readable_places.cache_clear()
    yield name
    shutil.rmtree(home)
    readable_places.cache_clear()


def seen_in(project: Project, files: Mapping[str, str], words: str) -> dict[str, Any]:
    """What our own run of the tests found."""
    task = claimed(project, files, words)
    [row] = task.verifications.filter(name__startswith="claim:test")
    return {
        "outcome": row.outcome,
        "argv": (row.command or {}).get("argv"),
        "said": row.findings,
        "defects": [one.severity for one in task.defects.all()],
        "claims": found(task),
    }


@pytest.mark.parametrize("tool", TOOLS, ids=IDS, indirect=True)
def test_passing_tests_prove_the_claim_and_its_count(project: Project, tool: str) -> None:
    passing, _, argv = TOOLS[tool]
    seen = seen_in(project, passing, "2 个测试全部通过")
    assert (seen["outcome"], seen["argv"]) == ("passed", argv), seen
    assert seen["said"] == ["2 passed, 0 failed, as claimed"]
    assert seen["defects"] == []


@pytest.mark.parametrize("tool", TOOLS, ids=IDS, indirect=True)
def test_failing_test_contradicts_the_claim(project: Project, tool: str) -> None:
    _, failing, argv = TOOLS[tool]
    seen = seen_in(project, failing, "all 2 tests pass")
    assert (seen["outcome"], seen["argv"]) == ("failed", argv), seen
    assert seen["said"] == ["claimed 2 passed, 0 failed; ran 1 passed, 1 failed"]
    assert seen["defects"] == ["high"]
