"""The in-memory broker's reader is woken; it neither polls nor waits for its timeout."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue

from config.memory_broker import URL, Transport, wake_readers

# Far apart, so that a reader that was not woken fails the test instead of passing late.
READER_WAITS_SECONDS = 60
TEST_WAITS_SECONDS = 10


class NotedEvent(threading.Event):
    """An event that tells when somebody begins to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_waiter = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.has_waiter.set()
        return super().wait(timeout)


class Reader:
    """A consumer with a prefetch window of one, on a queue of its own."""

    def __init__(self) -> None:
        self.queue = Queue(uuid4().hex)
        self.connection = Connection(URL)
        self.messages: list[Any] = []
        self.channel = self.connection.channel()
        self.consumer = Consumer(self.channel, [self.queue], callbacks=[self.note])
        self.consumer.qos(prefetch_count=1)
        self.consumer.consume()
        self.arrived = NotedEvent()
        self.connection.transport.arrived = self.arrived
        self.pool = ThreadPoolExecutor(1)

    def note(self, body: Any, message: Any) -> None:
        self.messages.append(message)

    def put(self, body: int) -> None:
        with Connection(URL) as connection:
            Producer(connection.channel()).publish(
                body, routing_key=self.queue.name, declare=[self.queue]
            )

    def drain(self) -> Future[Any]:
        return self.pool.submit(self.connection.drain_events, timeout=READER_WAITS_SECONDS)

    def drain_and_wait(self) -> Future[Any]:
        """Drain in the other thread; return once it waits for the event."""
        self.arrived.has_waiter.clear()
        waiting = self.drain()
        assert self.arrived.has_waiter.wait(TEST_WAITS_SECONDS)
        return waiting


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    wake_readers()
    made.pool.shutdown()
    made.connection.release()


def test_message_put_while_the_reader_waits_is_delivered(reader: Reader) -> None:
    waiting = reader.drain_and_wait()
    reader.put(1)
    waiting.result(TEST_WAITS_SECONDS)
    assert [message.payload for message in reader.messages] == [1]


def test_message_put_before_the_reader_looks_is_delivered(reader: Reader) -> None:
    reader.put(1)
    reader.drain().result(TEST_WAITS_SECONDS)
    assert [message.payload for message in reader.messages] == [1]


@pytest.mark.parametrize("settle", ["ack", "reject"])
def test_settling_a_message_makes_room_for_the_next(reader: Reader, settle: str) -> None:
    reader.put(1)
    reader.put(2)
    reader.drain().result(TEST_WAITS_SECONDS)
    waiting = reader.drain_and_wait()
    getattr(reader.messages[0], settle)()
    waiting.result(TEST_WAITS_SECONDS)
    assert [message.payload for message in reader.messages] == [1, 2]


def test_reader_looks_up_when_the_process_stops(reader: Reader) -> None:
    waiting = reader.drain_and_wait()
    wake_readers()
    with pytest.raises(TimeoutError):
        waiting.result(TEST_WAITS_SECONDS)
    assert not reader.messages


class SlowExchanges(dict[str, Any]):
    """Exchanges of the broker; whoever first misses one goes on after another has bound to it."""

    def __init__(self) -> None:
        super().__init__()
        self.missed = threading.Event()
        self.bound = threading.Event()

    def __missing__(self, name: str) -> Any:
        if not self.missed.is_set():
            self.missed.set()
            self.bound.wait(0.5)
        raise KeyError(name)


def test_binding_outlives_a_declaration_that_raced_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = SlowExchanges()
    monkeypatch.setattr(Transport.global_state, "exchanges", exchanges)
    name = uuid4().hex
    queue = Queue(name, Exchange(name), routing_key=name)
    with Connection(URL) as producing, Connection(URL) as consuming, ThreadPoolExecutor(1) as pool:
        # The scheduler declares what it sends to, the worker what it reads, at the same time.
        declared = pool.submit(queue.exchange(producing.channel()).declare)
        assert exchanges.missed.wait(TEST_WAITS_SECONDS)
        bound = queue(consuming.channel())
        bound.declare()
        exchanges.bound.set()
        declared.result(TEST_WAITS_SECONDS)
        Producer(producing.channel()).publish(1, exchange=name, routing_key=name)
        message = bound.get()
    assert message is not None
    assert message.payload == 1
