"""Threads of one process take turns to write, and a lost turn is an error, not a wait for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, OperationalError, connection, transaction

from config.sqlite import base

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


def in_own_connection(work: Any) -> Any:
    try:
        return work()
    finally:
        connection.close()


def lock_is_free() -> bool:
    return not base.writer_lock(str(connection.settings_dict["NAME"])).locked()


def test_second_writer_waits_for_the_first_and_then_writes() -> None:
    users = get_user_model().objects
    started = threading.Event()

    def write_second() -> int:
        started.set()
        with transaction.atomic():
            seen = users.count()
            users.create_user("second")
        return seen

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            users.create_user("first")
            rival = pool.submit(in_own_connection, write_second)
            assert started.wait(5)
            assert not rival.done()
        assert rival.result(timeout=5) == 1
    assert users.count() == 2


def test_writer_that_never_gets_its_turn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "WRITER_WAIT_SECONDS", 0.05)
    users = get_user_model().objects
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        users.create_user("first")
        rival = pool.submit(in_own_connection, lambda: users.create_user("second"))
        with pytest.raises(OperationalError, match="database is locked"):
            rival.result(timeout=5)
    assert [user.username for user in users.all()] == ["first"]


def test_reader_is_not_kept_waiting_by_a_writer() -> None:
    users = get_user_model().objects
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        users.create_user("first")
        assert pool.submit(in_own_connection, users.count).result(timeout=5) == 0


def roll_back() -> None:
    transaction.set_rollback(True)


@pytest.mark.parametrize("ending", [bool, roll_back, connection.close])
def test_lock_is_free_after_every_ending(ending: Callable[[], Any]) -> None:
    with transaction.atomic():
        get_user_model().objects.create_user("someone")
        assert not lock_is_free()
        ending()
    assert lock_is_free()


def test_lock_is_free_after_an_error() -> None:
    get_user_model().objects.create_user("same")
    with pytest.raises(IntegrityError), transaction.atomic():
        get_user_model().objects.create_user("same")
    assert lock_is_free()


def test_write_outside_a_transaction_takes_its_turn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "WRITER_WAIT_SECONDS", 0.05)
    get_user_model().objects.create_user("someone")
    with base.writer_lock(str(connection.settings_dict["NAME"])):
        with pytest.raises(OperationalError, match="database is locked"):
            get_user_model().objects.update(first_name="A")
        assert get_user_model().objects.get().first_name == ""
    get_user_model().objects.update(first_name="B")
    assert lock_is_free()


def test_many_writers_all_get_through() -> None:
    users = get_user_model().objects

    def write(number: int) -> None:
        with transaction.atomic():
            users.create_user(f"user-{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: in_own_connection(lambda: write(number)), range(80)))
    assert users.count() == 80
