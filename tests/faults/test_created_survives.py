"""CASES C-71: what was answered with 201 is there after a kill −9 right behind the answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.faults.conftest import SCALED_OUT
from tests.faults.site import Site
from tests.faults.test_mesh_survives import EMBEDDED, Mesh

pytestmark = pytest.mark.faults
PROJECT = "projects/mesh"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`serve` alone, on SQLite and memory."""
    with ExitStack() as stack:
        yield Site(stack, tmp_path_factory.mktemp("embedded-created"), "")


def created(mesh: Mesh, path: str, body: Any) -> Any:
    """Create something. Return what the answer said."""
    answer = mesh.call("alice", "POST", path, body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def assert_created_is_there(mesh: Mesh) -> None:
    """Kill the server right behind a task, and behind an output and a page; read them then."""
    task = created(mesh, f"{PROJECT}/tasks", {"title": "打开日志", "route": "direct"})
    mesh.kill()
    path = f"{PROJECT}/tasks/{task['id']}"
    read = mesh.call("alice", "GET", path).json()
    assert (read["id"], read["key"], read["title"]) == (task["id"], task["key"], task["title"])
    assert mesh.call("alice", "POST", f"{path}/claim").status_code == 200
    output = created(mesh, f"{path}/outputs", {"title": "note", "content": "the work"})
    page = created(mesh, f"{PROJECT}/wiki", {"name": "design", "body": "as built"})
    mesh.kill()
    [kept] = mesh.call("alice", "GET", f"{path}?expand=all").json()["outputs"]
    assert (kept["id"], kept["sha256"]) == (output["id"], output["sha256"])
    pages = mesh.call("alice", "GET", f"{PROJECT}/wiki").json()["results"]
    assert [one["id"] for one in pages] == [page["id"]]


def test_c_71_created_is_there_on_sqlite(embedded: Site) -> None:
    assert_created_is_there(Mesh(embedded, EMBEDDED))


def test_c_71_created_is_there_on_postgresql(installation: Site) -> None:
    assert_created_is_there(Mesh(installation, SCALED_OUT))
