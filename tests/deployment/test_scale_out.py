"""The same code as several processes: two web, two workers, one scheduler; PostgreSQL, Redis."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.deployment.processes import ManageProcess, manage, wait_until
from tests.deployment.test_serve import ADDRESS
from tests.services_up import PostgresServer, RedisServer

pytestmark = pytest.mark.faults


def is_ready(url: str) -> bool:
    """Return whether every check of /readyz is green."""
    return httpx.get(f"{url}readyz", timeout=20).status_code == 200


class Installation:
    """Five processes of one installation; both web processes start at once on nothing."""

    def __init__(self, stack: ExitStack, data_dir: Path, environment: dict[str, str]) -> None:
        def start(*arguments: str) -> ManageProcess:
            process = manage(*arguments, data_dir=data_dir, environment=environment)
            return stack.enter_context(process)

        self.webs = [start("serve") for _ in range(2)]
        self.urls = [web.wait_for(ADDRESS) for web in self.webs]
        self.workers = [start("worker", "--concurrency", "2") for _ in range(2)]
        self.beat = start("beat")
        self.processes = [*self.webs, *self.workers, self.beat]


@pytest.fixture
def installation(
    tmp_path: Path, private_postgres: PostgresServer, private_redis: RedisServer
) -> Iterator[Installation]:
    database_url = private_postgres.create_database(f"scale_{uuid4().hex}")
    environment = {"DATABASE_URL": database_url, "REDIS_URL": f"{private_redis.url}/0"}
    with ExitStack() as stack:
        yield Installation(stack, tmp_path, environment)


def test_processes_become_ready_and_stop_cleanly(installation: Installation) -> None:
    assert wait_until(lambda: all(map(is_ready, installation.urls)))
    passwords = [web for web in installation.webs if "with the password" in web.output]
    assert len(passwords) == 1
    assert all("Web part only" in web.output for web in installation.webs)
    assert [process.stop() for process in installation.processes] == [0, 0, 0, 0, 0]
    assert "Traceback" not in "".join(process.output for process in installation.processes)


def test_redis_that_crashes_and_comes_back_is_used_again(
    installation: Installation, private_redis: RedisServer
) -> None:
    assert wait_until(lambda: is_ready(installation.urls[0]))
    private_redis.kill()
    assert wait_until(lambda: not is_ready(installation.urls[0]))
    private_redis.start()
    assert wait_until(lambda: is_ready(installation.urls[0]))
    assert all(process.process.poll() is None for process in installation.processes)
    assert [process.stop() for process in installation.processes] == [0, 0, 0, 0, 0]
