"""C-83: many writers and several sealers make one gap-free chain; one changed byte is named."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from orchestration.models import AuditEvent, AuditSeal
from orchestration.services.audit import floor, seal_events, verify_chain
from orchestration.services.work import Actor, unit_of_work
from tests.races.contest import WAIT_SECONDS, in_own_connection, on_both, rivals

pytestmark = on_both
WRITERS = 16
SEALERS = 2
ROWS = 1000
WORDS = ("测试通过", "naïve café", "line\nline", '"quoted"', "\\", "")


@pytest.fixture(autouse=True)
def new_floor() -> Iterator[None]:
    """Another database lies behind this process at each test."""
    floor.reset()
    yield
    floor.reset()


def write_event(number: int) -> None:
    """Record one event in a transaction of its own."""
    with unit_of_work(Actor(f"agent:writer-{number % WRITERS}", f"request-{number}")) as work:
        work.record(
            "test.written",
            subject=f"test:{number}",
            project_id=None,
            before={"n": number, "share": number / 7, "none": None},
            after={"文": WORDS[number % len(WORDS)], "list": [number, str(number)]},
            why=WORDS[-number % len(WORDS)],
        )


def write_many(numbers: range) -> None:
    """Record one event a number."""
    for number in numbers:
        write_event(number)


def seal_until(is_over: threading.Event) -> None:
    """Seal again and again, as several `control` threads would."""
    while not is_over.is_set():
        seal_events()


def seal_the_rest() -> None:
    """Seal until nothing is left."""
    while AuditEvent.objects.filter(seal__isnull=True).exists():
        seal_events()


def write_and_seal() -> None:
    """Let every writer write its share while the sealers seal."""
    is_over = threading.Event()
    with ThreadPoolExecutor(SEALERS) as sealers:
        sealing = [
            sealers.submit(in_own_connection, partial(seal_until, is_over)) for _ in range(SEALERS)
        ]
        with rivals(WRITERS) as fire:
            fire(*[partial(write_many, range(n, ROWS, WRITERS)) for n in range(WRITERS)])
        is_over.set()
        for one in sealing:
            one.result(WAIT_SECONDS)
    seal_the_rest()


def change_by_force(table: str, column: str, key: tuple[str, int], value: str) -> None:
    """Change a row past its trigger, as somebody with the database's own rights could."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET session_replication_role = replica")
        else:
            cursor.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table]
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f'DROP TRIGGER "{name}"')
        cursor.execute(
            f'UPDATE "{table}" SET "{column}" = %s WHERE "{key[0]}" = %s',  # noqa: S608  # names only
            [value, key[1]],
        )
        assert cursor.rowcount == 1
        if connection.vendor == "postgresql":
            cursor.execute("SET session_replication_role = DEFAULT")


def test_c_83_chain_of_many_writers_verifies() -> None:
    before = AuditEvent.objects.count()
    write_and_seal()
    count, fault = verify_chain()
    assert (count, fault) == (before + ROWS, None)
    positions = list(AuditSeal.objects.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, before + ROWS + 1))
    written = AuditEvent.objects.filter(kind="test.written").values_list("subject", flat=True)
    assert set(written) == {f"test:{number}" for number in range(ROWS)}


FLIPS = {
    "kind": "test.read",
    "subject": "test:6",
    "before": '{"n": 66, "share": 9.428571428571427, "none": null}',
    "why": "测试不通过",
    "actor": "agent:writer-x",
    "request_id": "request-6!",
    "after": '{"list": [66, "66"], "\\u6587": "measured"}',
    "at": "2026-01-01 00:00:00+00:00",
}


@pytest.mark.parametrize("column", sorted(FLIPS))
def test_c_83_one_changed_value_is_named(column: str) -> None:
    write_many(range(60, 70))
    seal_the_rest()
    assert verify_chain()[1] is None
    changed = AuditEvent.objects.get(subject="test:66")
    change_by_force(AuditEvent._meta.db_table, column, ("id", changed.pk), FLIPS[column])
    count, fault = verify_chain()
    assert fault is not None
    assert fault.event_id == changed.pk
    seal = AuditSeal.objects.get(event=changed)
    assert (fault.position, count) == (seal.position, seal.position - 1)
    with pytest.raises(CommandError, match=f"event {changed.pk} "):
        call_command("verify_audit")


def test_c_83_seal_that_was_made_up_is_named() -> None:
    write_many(range(10))
    seal_the_rest()
    seal = AuditSeal.objects.get(event__subject="test:4")
    key = ("position", seal.position)
    change_by_force(AuditSeal._meta.db_table, "hash", key, f"f{seal.hash[1:-1]}0")
    _, fault = verify_chain()
    assert fault is not None
    assert fault.event_id == seal.event_id


@pytest.mark.postgres
def test_second_sealer_goes_away_while_the_first_has_not_committed() -> None:
    write_many(range(10))
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert seal_events() >= 10
        other = pool.submit(in_own_connection, seal_events)
        assert other.result(WAIT_SECONDS) == 0
    assert verify_chain()[1] is None
    assert not AuditEvent.objects.filter(seal__isnull=True).exists()


@pytest.mark.postgres
def test_event_that_commits_late_is_sealed_after_the_younger_ones() -> None:
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            write_event(1)
            pool.submit(in_own_connection, partial(write_event, 2)).result(WAIT_SECONDS)
            pool.submit(in_own_connection, seal_the_rest).result(WAIT_SECONDS)
        seal_the_rest()
    order = AuditSeal.objects.filter(event__kind="test.written").order_by("position")
    assert list(order.values_list("event__subject", flat=True)) == ["test:2", "test:1"]
    assert verify_chain()[1] is None
