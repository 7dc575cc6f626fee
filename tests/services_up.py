"""Private PostgreSQL and Redis servers on free ports, stopped by their process id.

`python -m tests.services_up -- COMMAND…` runs a command with TEST_DATABASE_URL and TEST_REDIS_URL.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import psycopg
import redis

POSTGRES_HOME = Path("/usr/lib/postgresql")
START_SECONDS = 30.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.05
POSTGRES_OPTIONS = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=200",
    "unix_socket_directories=",
    "listen_addresses=127.0.0.1",
    "log_min_messages=fatal",
)


class ServiceMissing(Exception):
    """A program of the server is not on this machine."""


class ServiceFailed(Exception):
    """The server did not come up. The message ends with what it logged."""


def find_postgres(program: str) -> str:
    """Return the path of a PostgreSQL program: PATH first, then Debian's place, newest version."""
    found = shutil.which(program)
    if found:
        return found
    versions = [path for path in POSTGRES_HOME.glob("*") if path.name.isdigit()]
    for version in sorted(versions, key=lambda path: int(path.name), reverse=True):
        if (version / "bin" / program).exists():
            return str(version / "bin" / program)
    raise ServiceMissing(f"no {program} on the PATH or under {POSTGRES_HOME}")


def find_redis() -> str:
    """Return the path of the Redis server. Errors: ServiceMissing."""
    found = shutil.which("redis-server")
    if not found:
        raise ServiceMissing("no redis-server on the PATH")
    return found


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Service:
    """A server process in a folder of its own. `kill` and `start` again make a crash."""

    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="countersign-service-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process id. Errors: ServiceFailed when it does not run."""
        if self.process is None:
            raise ServiceFailed("the server is not running")
        return self.process.pid

    def command(self) -> Sequence[str]:
        """Return the command line of the server."""
        raise NotImplementedError

    def is_answering(self) -> bool:
        """Return whether a client gets through."""
        raise NotImplementedError

    def account(self) -> dict[str, Any]:
        """Return the user to run as, as arguments of Popen."""
        return {}

    def start(self) -> None:
        """Start and wait until it answers. Errors: ServiceFailed."""
        log_path = self.folder / "server.log"
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*dies_with_parent(), *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self.account(),
            )
        ends = time.monotonic() + START_SECONDS
        while not self.is_answering():
            if self.process.poll() is not None or time.monotonic() > ends:
                said = log_path.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise ServiceFailed(f"{self.command()[0]} did not come up: {said}")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """Kill it at once, as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """Stop it in order, then by force; remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self._wait()
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        if self.process is not None:
            self.process.wait(STOP_SECONDS)
            self.process = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()


class RedisServer(Service):
    """Redis without files: a restart forgets everything, which is what the loss tests want."""

    @property
    def url(self) -> str:
        """Return the address without a database number."""
        return f"redis://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        """Return the command line: no snapshots, no append file."""
        options = ["--save", "", "--appendonly", "no", "--databases", "64"]
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [find_redis(), *where, *options]

    def is_answering(self) -> bool:
        """Return whether PING is answered."""
        client = redis.Redis(port=self.port, socket_connect_timeout=1)
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()


class PostgresServer(Service):
    """PostgreSQL in a temporary cluster; as root it runs as `postgres` or `nobody`."""

    stop_signal = signal.SIGINT  # the fast shutdown: open sessions are ended

    @property
    def url(self) -> str:
        """Return the address of the maintenance database."""
        return self.database_url("postgres")

    def database_url(self, name: str) -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def create_database(self, name: str) -> str:
        """Create an empty database. Return its address."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.database_url(name)

    def account(self) -> dict[str, Any]:
        """Return `postgres`, else `nobody`, when we are root: the server refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        raise ServiceMissing("no account `postgres` or `nobody` to run PostgreSQL as")

    def start(self) -> None:
        """Make the cluster at the first start, then start the server."""
        if not (self.folder / "data").exists():
            self._make_cluster()
        super().start()

    def command(self) -> Sequence[str]:
        """Return the command line with everything durable turned off."""
        options = [part for option in POSTGRES_OPTIONS for part in ("-c", option)]
        data = str(self.folder / "data")
        return [find_postgres("postgres"), "-D", data, "-p", str(self.port), *options]

    def is_answering(self) -> bool:
        """Return whether a session opens."""
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_cluster(self) -> None:
        account = self.account()
        if account:
            os.chown(self.folder, account["user"], account["group"])
        wanted = ["-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        made = subprocess.run(
            [find_postgres("initdb"), "-D", str(self.folder / "data"), *wanted],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            **account,
        )
        if made.returncode:
            raise ServiceFailed(f"initdb failed: {made.stderr[-2000:]}")


def dies_with_parent() -> Sequence[str]:
    """Return a prefix that ends the server with us, even by SIGKILL, where the system has one."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "SIGQUIT"] if setpriv else []


def main(arguments: Sequence[str]) -> int:
    """Run the command between start and stop. Return its exit code."""
    command = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    if not command:
        print("usage: python -m tests.services_up -- COMMAND [ARGUMENT…]", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with PostgresServer() as postgres, RedisServer() as redis_server:
        addresses = {"TEST_DATABASE_URL": postgres.url, "TEST_REDIS_URL": redis_server.url}
        with subprocess.Popen(command, env={**os.environ, **addresses}) as child:
            while True:
                try:
                    return child.wait()
                except KeyboardInterrupt:
                    # The terminal sent it to the child as well; wait for its own end.
                    continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
