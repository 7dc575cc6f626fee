"""The environment is read with types; a bad value ends the start with one line that names it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config import env


def test_value_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n", encoding="utf-8")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    assert env.read_text("THING") == "from a file"


def test_value_from_two_places_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a", encoding="utf-8")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("THING", "b")
    with pytest.raises(env.BadEnvironment, match="set either THING or THING_FILE, not both"):
        env.read_text("THING")


def test_missing_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THING_FILE", str(tmp_path / "absent"))
    with pytest.raises(env.BadEnvironment, match=r"THING_FILE: cannot read .*absent"):
        env.read_text("THING")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("off", False), ("", False)],
)
def test_bool_words(monkeypatch: pytest.MonkeyPatch, word: str, expected: bool) -> None:  # noqa: FBT001  # parametrized
    monkeypatch.setenv("THING", word)
    assert env.read_bool("THING", default=not expected) is expected


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (lambda: env.read_bool("THING", default=False), "maybe", "expected 1 or 0, got 'maybe'"),
        (lambda: env.read_int("THING", 1, low=0, high=9), "ten", "expected a whole number"),
        (lambda: env.read_int("THING", 1, low=0, high=9), "10", "expected 0 to 9, got 10"),
        (lambda: env.read_choice("THING", "a", choices=("a", "b")), "c", "expected one of a, b"),
        (lambda: env.read_paths("THING", ()), "here/there", "expected absolute paths"),
    ],
)
def test_bad_value_is_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], Any], value: str, problem: str
) -> None:
    monkeypatch.setenv("THING", value)
    with pytest.raises(env.BadEnvironment) as caught:
        read()
    line = str(caught.value)
    assert line.startswith(f"countersign: THING: {problem}")
    assert "\n" not in line


def test_list_drops_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THING", " a, ,b,")
    assert env.read_list("THING") == ("a", "b")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://user:hunter2@host/name", "expected postgresql://"),
        ("postgresql://user:hunter2@host", "the database name is missing"),
        ("postgresql://user:hunter2@host:port/name", "the port is not a number"),
    ],
)
def test_bad_database_url_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str, problem: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(env.BadEnvironment, match=problem) as caught:
        env.read_postgres()
    assert "hunter2" not in str(caught.value)


def test_database_url_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://us%40er:p%2Fw@db:5433/na%20me?sslmode=require")
    assert env.read_postgres() == {
        "NAME": "na me",
        "USER": "us@er",
        "PASSWORD": "p/w",
        "HOST": "db",
        "PORT": "5433",
        "query": {"sslmode": "require"},
    }


def test_redis_url_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "amqp://host")
    with pytest.raises(env.BadEnvironment, match="REDIS_URL: expected redis://"):
        env.read_redis_url()


def test_secret_key_is_made_once_and_only_for_its_owner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SECRET_KEY")
    first = env.read_secret_key(tmp_path)
    assert len(first) >= 50
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert env.read_secret_key(tmp_path) == first


def test_empty_secret_key_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SECRET_KEY")
    (tmp_path / "secret_key").touch()
    with pytest.raises(env.BadEnvironment, match="is empty"):
        env.read_secret_key(tmp_path)


def test_data_directory_is_made_for_its_owner(tmp_path: Path) -> None:
    made = env.prepare_data_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(env.BadEnvironment, match="COUNTERSIGN_DATA_DIR: cannot create"):
        env.prepare_data_dir(tmp_path / "file")


def test_tests_never_see_the_operators_database() -> None:
    assert os.environ["DATABASE_URL"] == os.environ.get("TEST_DATABASE_URL", "")
