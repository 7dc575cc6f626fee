"""Sockets on the real ASGI application: who gets in, what a commit tells them, what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection

from dashboard.hub import process_hub, socket_groups
from orchestration.broadcast import project_group
from orchestration.models import Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.projects import pause_project
from orchestration.services.work import Actor
from tests.factories import agent_step, child, drive, new_project, submit_plan
from tests.realtime.conftest import in_thread

pytestmark = pytest.mark.django_db(transaction=True)
Opener = Callable[..., Any]
SIR = Actor("human:sir")


@pytest.fixture
def project(transactional_db: None) -> Project:
    return new_project("live")


@pytest.fixture
def root(project: Project) -> Task:
    made = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    return made


async def test_stranger_is_refused_before_the_socket_opens(
    transactional_db: None, project: Project, open_socket: Opener
) -> None:
    assert (await open_socket(None, "?project=live")).close_code == 4401


async def test_person_without_a_role_is_refused(
    transactional_db: None, project: Project, open_socket: Opener
) -> None:
    user = await in_thread(lambda: get_user_model().objects.create_user("nobody", password="x"))
    assert (await open_socket(user, "?project=live")).close_code == 4401


async def test_account_that_was_closed_is_refused(
    reader: User, project: Project, open_socket: Opener
) -> None:
    reader.is_active = False
    await reader.asave()
    assert (await open_socket(reader)).close_code == 4401


async def test_page_of_another_site_is_refused(reader: User, open_socket: Opener) -> None:
    assert (await open_socket(reader, origin="https://evil.example")).close_code is not None


async def test_unknown_project_is_refused(reader: User, open_socket: Opener) -> None:
    assert (await open_socket(reader, "?project=nothing")).close_code == 4404


async def test_commit_reaches_the_socket_as_a_hint(
    reader: User, project: Project, open_socket: Opener
) -> None:
    socket = await open_socket(reader, "?project=live")
    await in_thread(lambda: pause_project(project_id=project.pk, actor=SIR))
    message = await socket.read_topic(f"project:{project.pk}")
    assert message["version"] == 2


async def test_socket_of_another_project_hears_nothing(
    reader: User, project: Project, open_socket: Opener
) -> None:
    other = await in_thread(lambda: new_project("other"))
    socket = await open_socket(reader, "?project=other")
    await in_thread(lambda: pause_project(project_id=project.pk, actor=SIR))
    paused = await in_thread(lambda: pause_project(project_id=other.pk, actor=SIR))
    heard = await socket.topics_until(f"project:{other.pk}", paused.version)
    assert f"project:{project.pk}" not in heard


async def test_overview_hears_every_project(
    reader: User, project: Project, open_socket: Opener
) -> None:
    socket = await open_socket(reader, "?project=%2A")
    await in_thread(lambda: pause_project(project_id=project.pk, actor=SIR))
    assert await socket.read_topic(f"project:{project.pk}")


async def test_sealed_events_are_told_to_the_log(
    reader: User, project: Project, root: Task, open_socket: Opener
) -> None:
    socket = await open_socket(reader, "?project=live")
    await in_thread(seal_events)
    assert await socket.read_topic(f"audit:{project.pk}")


async def test_what_a_page_sends_is_dropped(
    reader: User, project: Project, root: Task, open_socket: Opener
) -> None:
    socket = await open_socket(reader, "?project=live")
    await socket.send(text='{"verdict": "approve"}')
    await socket.send(bytes=b"\x00\x01")
    await in_thread(lambda: pause_project(project_id=project.pk, actor=SIR))
    assert await socket.read_topic(f"project:{project.pk}")
    task = await in_thread(lambda: child(root, "1"))
    assert task.status == "pending"


def database_connections() -> int:
    """Count the connections to the database: of the server, or open files of SQLite."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname=current_database()")
            row = cursor.fetchone()
        connection.close()
        assert row is not None
        return int(row[0])
    name = str(connection.settings_dict["NAME"])
    held = list(Path("/proc/self/fd").iterdir())
    return sum(str(link.readlink()) == name for link in held if link.is_symlink())


async def test_two_hundred_sockets_share_one_subscription_and_hold_no_connection(
    reader: User, project: Project, open_socket: Opener
) -> None:
    first = await open_socket(reader, "?project=live")
    before = await in_thread(database_connections)
    sockets = [first, *[await open_socket(reader, "?project=live") for _ in range(199)]]
    assert process_hub().groups == frozenset(socket_groups([project.pk]))
    layer = get_channel_layer()
    members = getattr(layer, "groups", {}).get(project_group(project.pk))
    assert members is None or len(members) == 1
    assert await in_thread(database_connections) <= before
    await in_thread(lambda: pause_project(project_id=project.pk, actor=SIR))
    hints = await asyncio.gather(*(one.read_topic(f"project:{project.pk}") for one in sockets))
    assert len(hints) == 200


async def test_hub_stops_when_the_last_page_is_left(
    reader: User, project: Project, open_socket: Opener
) -> None:
    socket = await open_socket(reader, "?project=live")
    await socket.close()
    assert process_hub().groups == frozenset()
