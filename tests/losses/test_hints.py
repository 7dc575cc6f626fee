"""Hints that never arrive: the layer drops them or is down, and a fresh look shows the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import channel_layers, get_channel_layer
from django.test import override_settings

from orchestration.broadcast import project_group, publisher, send_hints
from orchestration.contracts.hints import Hint
from orchestration.models import Project, Task
from tests.api.callers import agent_client
from tests.factories import claim, new_agent, new_project, set_status
from tests.races.contest import direct_task
from tests.services_up import free_port

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 10
TINY = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1}}}


def statuses_by_refetch(project: Project) -> dict[str, str]:
    """Ask for the project's tasks as a page does when it catches up."""
    listed = agent_client(project).read(f"/api/projects/{project.pk}/tasks")
    return {row["id"]: row["status"] for row in listed["results"]}


def change_two(project: Project) -> dict[str, str]:
    """Change two tasks. Return the truth."""
    first, second = direct_task(project), direct_task(project, "打开报表")
    agent = new_agent()
    claim(first, agent)
    set_status(first, agent, "waiting_human", detail="Which one?")
    return {str(first.pk): "waiting_human", str(second.pk): "pending"}


@pytest.fixture
def tiny_layer() -> Iterator[None]:
    """A channel layer that keeps one message a channel and drops the rest."""
    with override_settings(CHANNEL_LAYERS=TINY):
        yield


@pytest.mark.usefixtures("tiny_layer")
async def test_hint_that_the_layer_dropped_is_made_good_by_a_refetch() -> None:
    layer = get_channel_layer()
    assert layer is not None
    project = await database_sync_to_async(new_project)()
    channel = await layer.new_channel()
    await layer.group_add(project_group(project.pk), channel)
    publisher.bind_loop(asyncio.get_running_loop())
    try:
        truth = await database_sync_to_async(change_two)(project)
        # Nobody reads the channel: it keeps the first message, and every later one is dropped.
        for number in range(3):
            await send_hints([Hint(f"task:{number}", project.pk, 1)])
        assert layer.channels[channel].qsize() == 1
    finally:
        publisher.unbind_loop()
    assert await database_sync_to_async(statuses_by_refetch)(project) == truth


def dead_layer() -> dict[str, Any]:
    """Settings of a layer at an address where nobody listens."""
    hosts = [f"redis://127.0.0.1:{free_port()}/0"]
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": hosts}}}


def test_layer_that_is_down_undoes_nothing_and_later_hints_arrive() -> None:
    project = new_project()
    with override_settings(CHANNEL_LAYERS=dead_layer()):
        truth = change_two(project)
        assert statuses_by_refetch(project) == truth
    with override_settings(CHANNEL_LAYERS=TINY):
        asyncio.run(hears_the_next_change(project))
    assert Task.objects.filter(project=project).count() == 3
    channel_layers.backends.clear()


async def hears_the_next_change(project: Project) -> None:
    """Listen as a page would and change one thing: the publisher's thread has lived on."""
    layer = get_channel_layer()
    assert layer is not None
    channel = await layer.new_channel()
    await layer.group_add(project_group(project.pk), channel)
    publisher.bind_loop(asyncio.get_running_loop())
    try:
        await database_sync_to_async(direct_task)(project)
        message = await asyncio.wait_for(layer.receive(channel), SECONDS)
        topics = {hint["topic"] for hint in message["hints"]}
        assert f"project:{project.pk}" in topics
    finally:
        publisher.unbind_loop()
