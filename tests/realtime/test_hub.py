"""The hub alone: one subscription a group, hints at once and then coalesced, an outage told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from channels.layers import get_channel_layer

from dashboard import hub as hub_module
from dashboard.hub import BEAT, BEAT_TOPIC, Deaf, Hub, Mailbox, socket_groups
from orchestration.broadcast import INBOX_GROUP, project_group, publisher, send_hints
from orchestration.contracts.hints import Hint


async def read(mailbox: Mailbox) -> list[dict[str, Any]]:
    """Wait for what a mailbox was sent."""
    async with asyncio.timeout(5):
        return [json.loads(text) for text in await mailbox.take()]


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    made = Hub()
    yield made
    for mailbox in list(made._everyone()):
        await made.leave(mailbox)


async def joined(hub: Hub, *projects: int, topics: str = "") -> Mailbox:
    mailbox = Mailbox(topics=topics)
    await hub.join(mailbox, socket_groups(projects))
    return mailbox


async def test_many_sockets_cost_one_subscription_a_group(hub: Hub) -> None:
    mailboxes = [await joined(hub, 7) for _ in range(50)]
    layer = get_channel_layer()
    assert layer is not None
    assert hub.groups == {INBOX_GROUP, project_group(7)}
    await send_hints([Hint("task:1", 7, 3)])
    assert [await read(one) for one in mailboxes] == [[{"topic": "task:1", "version": 3}]] * 50


async def test_hints_go_to_the_sockets_of_their_project_and_the_inboxs_to_all(hub: Hub) -> None:
    seven, eight = await joined(hub, 7), await joined(hub, 8)
    await send_hints([Hint("task:1", 7, 1), Hint("inbox", None)])
    assert {one["topic"] for one in await read(eight)} == {"inbox"}
    topics: set[str] = set()
    while topics != {"task:1", "inbox"}:
        topics |= {one["topic"] for one in await read(seven)}


async def test_socket_of_all_projects_hears_projects_but_no_single_task(hub: Hub) -> None:
    overview = await joined(hub, 7, 8, topics="project:")
    hints = [Hint("task:1", 7), Hint("log:8", 8), Hint("project:8", 8), Hint("decision:4", None)]
    await send_hints(hints)
    topics: set[str] = set()
    while len(topics) < 2:
        topics |= {one["topic"] for one in await read(overview)}
    assert topics == {"project:8", "decision:4"}


async def test_first_hint_of_a_burst_is_sent_at_once_and_the_newest_of_the_rest_later(
    hub: Hub,
) -> None:
    mailbox = await joined(hub, 7)
    started = asyncio.get_running_loop().time()
    hub.publish({"topic": "task:1", "project": 7, "version": 1})
    first = await read(mailbox)
    assert asyncio.get_running_loop().time() - started < hub_module.WINDOW_SECONDS / 2
    for version in range(2, 50):
        hub.publish({"topic": "task:1", "project": 7, "version": version})
    second = await read(mailbox)
    took = asyncio.get_running_loop().time() - started
    assert (first, second) == (
        [{"topic": "task:1", "version": 1}], [{"topic": "task:1", "version": 49}],
    )  # fmt: skip
    assert took >= hub_module.WINDOW_SECONDS * 0.9


@pytest.mark.parametrize("trailing", [BEAT_TOPIC, "audit:7"])
async def test_hint_right_after_a_beat_or_a_seal_is_sent_at_once(trailing: str) -> None:
    mailbox = Mailbox()
    mailbox.put(trailing, BEAT)
    assert await mailbox.take() == [BEAT]
    mailbox.put("task:1", "first", 1)
    began = asyncio.get_running_loop().time()
    assert await mailbox.take() == ["first"]
    assert asyncio.get_running_loop().time() - began < hub_module.WINDOW_SECONDS / 2


async def test_topic_is_sent_at_most_four_times_a_second(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    loop = asyncio.get_running_loop()
    ends, sent = loop.time() + 1.0, 0
    received: list[float] = []
    reading = asyncio.ensure_future(collect(mailbox, received))
    while loop.time() < ends:
        hub.publish({"topic": "project:7", "project": 7, "version": sent})
        sent += 1
        await asyncio.wait({reading}, timeout=0.01)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert sent > 50
    assert 4 <= len(received) <= 5
    gaps = [after - before for before, after in pairwise(received)]
    assert min(gaps) > hub_module.WINDOW_SECONDS * 0.9


async def collect(mailbox: Mailbox, received: list[float]) -> None:
    """Note when each message came."""
    while True:
        await mailbox.take()
        received.append(asyncio.get_running_loop().time())


async def test_what_comes_within_a_window_goes_out_together(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    hub.publish({"topic": "log:7", "project": 7, "version": 1})
    await read(mailbox)
    hub.publish({"topic": "task:2", "project": 7, "version": 1})
    hub.publish({"topic": "task:3", "project": 7, "version": 1})
    assert {one["topic"] for one in await read(mailbox)} == {"task:2", "task:3"}


async def test_late_older_version_does_not_replace_a_newer_one(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    hub.publish({"topic": "task:2", "project": 7, "version": 5})
    hub.publish({"topic": "task:2", "project": 7, "version": 4})
    assert await read(mailbox) == [{"topic": "task:2", "version": 5}]


async def test_socket_that_ends_does_not_wait_for_its_window(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    hub.publish({"topic": "task:2", "project": 7, "version": 1})
    await read(mailbox)
    loop = asyncio.get_running_loop()
    began = loop.time()
    mailbox.end(1013)
    assert await read(mailbox) == []
    assert loop.time() - began < hub_module.WINDOW_SECONDS / 2


def bound_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that hints of other threads go to."""
    return publisher._loop


async def test_last_one_out_stops_the_hub_and_the_next_one_starts_it(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    assert bound_loop() is asyncio.get_running_loop()
    await hub.leave(mailbox)
    assert hub.groups == frozenset()
    assert bound_loop() is None
    again = await joined(hub, 7)
    await send_hints([Hint("task:1", 7, 1)])
    assert await read(again) == [{"topic": "task:1", "version": 1}]


async def test_socket_that_fell_far_behind_is_told_to_catch_up() -> None:
    mailbox = Mailbox()
    for number in range(hub_module.MAILBOX_TOPICS + 5):
        mailbox.put(f"task:{number}", json.dumps({"topic": f"task:{number}"}))
    messages = await read(mailbox)
    assert messages[0] == {"catch_up": True}
    assert len(messages) < 10


async def test_lost_pulse_makes_every_socket_catch_up(hub: Hub) -> None:
    mailbox = await joined(hub, 7)
    hub._hear(1)
    hub._hear(3)
    assert await read(mailbox) == [{"catch_up": True}]


class BrokenLayer:
    """A layer that is down: beyond our processes, so the test stands in for it."""

    async def new_channel(self) -> str:
        raise ConnectionError("down")


async def test_layer_that_is_down_lets_nobody_believe_it_is_live(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "get_channel_layer", BrokenLayer)
    with pytest.raises(Deaf, match="down"):
        await joined(hub, 7)
    assert publisher._loop is None


async def test_layer_that_stops_answering_ends_the_sockets(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "PULSE_SECONDS", 0.01)
    mailbox = await joined(hub, 7)
    monkeypatch.setattr(hub._layer, "send", swallow)
    await read(mailbox)
    assert mailbox.close_code == hub_module.TRY_AGAIN_LATER
    with pytest.raises(Deaf):
        await joined(hub, 8)


async def swallow(channel: str, message: object) -> None:
    """Lose a message, as a layer that is down does."""
