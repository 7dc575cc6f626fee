"""The archive over REST and on the task's page, in its three forms."""

from __future__ import annotations

import io
import zipfile

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from orchestration.models import DeliveryArchive, Project, Task
from tests.api.callers import Caller, agent_client, problem
from tests.factories import drive, new_project, new_sir, step, submit_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project("demo")


@pytest.fixture
def root(project: Project) -> Task:
    return archived(project)


def archived(project: Project) -> Task:
    made = submit_plan(project, step("1", run=["sh -c 'echo hi > made.txt'"],
                       expected_artifacts=["made.txt"]))  # fmt: skip
    drive(project)
    return made


@pytest.fixture
def reader(project: Project) -> Caller:
    return agent_client(project, scopes=("observe",))


def test_each_form_is_read_as_it_was_locked(reader: Caller, root: Task) -> None:
    path = f"/api/projects/demo/tasks/{root.pk}/archive"
    archive = DeliveryArchive.objects.select_related("markdown", "document").get(task=root)
    for form, kind, locked in (
        ("json", "application/json", archive.document),
        ("md", "text/markdown; charset=utf-8", archive.markdown),
    ):
        answer = reader.get(path, {"format": form})
        assert answer.status_code == 200
        assert answer["Content-Type"] == kind
        assert answer["ETag"] == f'"{locked.content_id}"'
        assert answer.content == bytes(locked.content.data)
    assert reader.read(path)["head"]["task"] == str(root)
    packed = reader.get(path, {"format": "zip"})
    assert packed["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(packed.getvalue())) as found:
        assert "archive.md" in found.namelist()


def test_where_none_was_written_it_says_so_in_every_form(reader: Caller, project: Project) -> None:
    open_root = submit_plan(project, step("1", run=()))
    for form in ("json", "md", "zip"):
        answer = reader.get(f"/api/projects/demo/tasks/{open_root.pk}/archive", {"format": form})
        assert answer.status_code == 409
    answer = reader.get(f"/api/projects/demo/tasks/{open_root.pk}/archive")
    problem(answer, 409, "no_archive")


def test_another_projects_agent_sees_none(root: Task) -> None:
    stranger = agent_client(new_project("other"), name="stranger")
    assert stranger.get(f"/api/projects/demo/tasks/{root.pk}/archive").status_code == 404


def test_the_task_page_offers_the_download(client: Client, root: Task) -> None:
    client.force_login(new_sir())
    page = client.get(f"/projects/demo/tasks/{root.pk}/").content.decode()
    for kind in ("md", "json", "zip"):
        path = f"/projects/demo/tasks/{root.pk}/archive.{kind}"
        assert path in page
        answer = client.get(path)
        assert answer.status_code == 200
        assert "attachment" in answer["Content-Disposition"]
        assert b"".join(answer)
    assert client.get(f"/projects/demo/tasks/{root.pk}/archive.exe").status_code == 404


async def test_the_zip_is_streamed_without_blocking_the_event_loop(
    transactional_db: None,
) -> None:
    made = await sync_to_async(lambda: archived(new_project("demo")))()
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(new_sir)())
    answer = await client.get(f"/projects/demo/tasks/{made.pk}/archive.zip")
    # A synchronous iterator would be read whole here, and Django warns of it.
    data = b"".join([piece async for piece in answer])  # type: ignore[attr-defined]
    assert len(data) == int(answer["Content-Length"])
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        assert "archive.md" in found.namelist()
