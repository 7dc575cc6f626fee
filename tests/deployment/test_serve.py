"""`manage.py serve` as a process: it prepares, answers, refuses a second, stops, comes back."""

import signal
import socket
import stat
from pathlib import Path

import httpx
import pytest

from tests.deployment.processes import START_SECONDS, manage

ADDRESS = r"Countersign is at (http://\S+/)"


def assert_static_files_are_whole(url: str) -> None:
    """Follow the sign-in page's style sheet: a lasting name, whole, compressed, 304 on repeat."""
    page = httpx.get(f"{url}accounts/login/").text
    href = page.split('rel="stylesheet" href="/')[1].split('"')[0]
    plain = httpx.get(f"{url}{href}", headers={"Accept-Encoding": "identity"})
    assert len(plain.content) == int(plain.headers["content-length"]) > 0
    style = httpx.get(f"{url}{href}")
    assert style.status_code == 200
    assert "immutable" in style.headers["cache-control"]
    assert style.content == plain.content
    assert int(style.headers["content-length"]) < len(plain.content) / 4
    again = httpx.get(f"{url}{href}", headers={"If-None-Match": style.headers["etag"]})
    assert again.status_code == 304


def test_first_start_prepares_and_the_second_changes_nothing(tmp_path: Path) -> None:
    with manage("serve", data_dir=tmp_path / "data") as first:
        url = first.wait_for(ADDRESS)
        alive = httpx.get(f"{url}healthz", timeout=START_SECONDS)
        assert alive.status_code == 200
        assert alive.headers["content-security-policy"].startswith("default-src 'self'")
        assert "server" not in alive.headers
        assert_static_files_are_whole(url)
        assert first.stop(signal.SIGINT) == 0
        assert first.lines[-1] == "Stopped."
        assert "Sign in as sir with the password" in first.output
        assert "Traceback" not in first.output
        assert "Warning" not in first.output
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    with manage("serve", data_dir=tmp_path / "data") as second:
        second.wait_for(ADDRESS)
        assert second.stop(signal.SIGTERM) == 0
        assert "with the password" not in second.output


def test_data_directory_has_one_server_until_that_one_is_dead(tmp_path: Path) -> None:
    with manage("serve", data_dir=tmp_path) as first:
        url = first.wait_for(ADDRESS)
        with manage("serve", data_dir=tmp_path) as second:
            assert second.wait() == 1
            assert second.lines == [
                f"CommandError: {tmp_path} is already in use by another Countersign "
                f"(process {first.process.pid}, {url})"
            ]
        assert httpx.get(f"{url}healthz", timeout=START_SECONDS).status_code == 200
        first.stop(signal.SIGKILL)
    with manage("serve", data_dir=tmp_path) as third:
        url = third.wait_for(ADDRESS)
        assert httpx.get(f"{url}healthz", timeout=START_SECONDS).status_code == 200
        assert third.stop() == 0


def test_taken_port_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with manage("serve", "--port", port, data_dir=tmp_path) as server:
            assert server.wait() == 1
            assert server.lines == [
                f"CommandError: cannot listen on 127.0.0.1:{port}: Address already in use"
            ]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("PORT", "eighty", "countersign: PORT: expected a whole number, got 'eighty'"),
        ("DEBUG", "perhaps", "countersign: DEBUG: expected 1 or 0, got 'perhaps'"),
        ("REDIS_URL", "http://x", "countersign: REDIS_URL: expected redis://host:port/number"),
    ],
)
def test_bad_variable_stops_the_start_with_one_line(
    tmp_path: Path, name: str, value: str, line: str
) -> None:
    with manage("serve", data_dir=tmp_path, environment={name: value}) as server:
        assert server.wait() == 1
        assert server.lines == [line]


@pytest.mark.parametrize("command", ["worker", "beat"])
def test_worker_and_beat_need_redis_and_say_so(tmp_path: Path, command: str) -> None:
    with manage(command, data_dir=tmp_path) as process:
        assert process.wait() == 1
        assert len(process.lines) == 1
        assert "needs REDIS_URL" in process.lines[0]


def test_server_that_may_not_prepare_refuses_an_old_schema(tmp_path: Path) -> None:
    with manage("serve", "--no-prepare", data_dir=tmp_path) as server:
        assert server.wait() == 1
        assert server.lines == [
            "CommandError: migrations are pending: run `manage.py migrate` first"
        ]
