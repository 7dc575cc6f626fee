"""`run_playbook` as a process of its own: its engine or the server's, its words, its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.commands.conftest import DEMO, EXAMPLES, copy_package
from tests.shape.test_repository_shape import tracked_files

pytestmark = pytest.mark.sqlite
ROOT: Path = settings.BASE_DIR
SECONDS = 120
DECIDE = """
from django.contrib.auth.models import User
from orchestration.models import Decision
from orchestration.services.decisions import Verdict, decide_decision
from orchestration.services.work import Actor
row = Decision.objects.get(status="open")
verdict = Verdict("approve", row.version, row.digest)
sir = User.objects.get(username="sir")
decide_decision(decision_id=row.pk, verdict=verdict, actor=Actor("human:sir"), user_id=sir.pk)
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a schema, made once: making it takes longer than the tests."""
    path = tmp_path_factory.mktemp("migrated")
    subprocess.run(  # our own command
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT, env=environment(path), check=True, timeout=SECONDS,
    )  # fmt: skip
    return path


@pytest.fixture
def data_dir(migrated: Path, tmp_path: Path) -> Path:
    """A data directory of this test's own."""
    return Path(shutil.copytree(migrated, tmp_path / "data"))


@pytest.fixture
def manage(data_dir: Path) -> Iterator[Start]:
    """Start management commands on the data directory; whatever still runs is ended after."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=environment(data_dir), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def environment(data_dir: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | {
        "COUNTERSIGN_DATA_DIR": str(data_dir),
        "COUNTERSIGN_DEMO": "0",
        "PORT": "0",
        "PYTHONUNBUFFERED": "1",
    }


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Read lines until one holds the words. Return it, or fail with everything that came."""
    lines: list[str] = []
    for line in output_of(process):
        lines.append(line)
        if words in line:
            return line
    raise AssertionError(f"{words!r} never came:\n{''.join(lines)}")


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=SECONDS)
    return process.returncode, said


def book(folder: Path, *commands: str) -> str:
    steps = [
        {"id": f"s{at}", "action": f"Step {at}", "run": [command]}
        for at, command in enumerate(commands)
    ]
    path = folder / "book.yaml"
    path.write_text(json.dumps({"title": "A small book", "steps": steps}), encoding="utf-8")
    return str(path)


def test_a_playbook_runs_on_its_own_engine_and_tells_what_was_locked(
    manage: Start, tmp_path: Path
) -> None:
    code, said = end_of(manage("run_playbook", book(tmp_path, "echo hello", "echo more")))

    assert code == 0, said
    assert "BOOK-1 A small book, in " in said
    assert "s0           | hello" in said
    assert "s1           done" in said
    assert said.index("BOOK-1 is done. Locked artifacts:") > said.index("s1           done")
    assert said.count("Run record v1") == 2


def test_a_failing_playbook_ends_with_1_and_says_why(manage: Start, tmp_path: Path) -> None:
    code, said = end_of(manage("run_playbook", book(tmp_path, "false"), "--no-wait"))

    assert code == 1, said
    assert "BOOK-1 has failed: FATAL_ERROR: MAX_RETRIES_EXCEEDED" in said
    assert "Sir's decision is needed: max_retries" in said


def test_waiting_for_sir_ends_with_2_when_told_not_to_wait(manage: Start, tmp_path: Path) -> None:
    package = copy_package(tmp_path / "tidytext")
    run = manage("run_playbook", str(DEMO), "--workspace", str(package), "--no-wait")
    code, said = end_of(run)

    assert code == 2, said
    assert "Sir's decision is needed: medium_defect of TIDYTEXT-4" in said
    assert "   +    room = limit - len(ELLIPSIS)" in said
    assert "Verdicts: approve, request_changes (with a reason)" in said
    assert "TIDYTEXT-1 is not done; it goes on when the server runs" in said


def test_it_waits_with_its_pages_up_and_goes_on_once_sir_has_decided(
    manage: Start, tmp_path: Path
) -> None:
    package = copy_package(tmp_path / "tidytext")
    run = manage("run_playbook", str(DEMO), "--workspace", str(package))
    url = read_until(run, "Countersign is at ").split(" is at ")[1].split()[0]
    decide_at = read_until(run, "Decide at ").split("Decide at ")[1].strip()
    answer = http_status(decide_at)
    decided = manage("shell", "-c", DECIDE)

    assert decide_at.startswith(url)
    assert answer < 500
    assert end_of(decided)[0] == 0
    code, said = end_of(run)
    assert code == 0, said
    assert "patched tidytext/excerpts.py" in said
    assert "reports/report.md v1" in said


def test_a_running_server_does_the_work_and_is_followed(manage: Start, tmp_path: Path) -> None:
    server = manage("serve")
    read_until(server, "Countersign is at ")
    code, said = end_of(manage("run_playbook", book(tmp_path, "echo hello")))
    assert code == 0, said
    assert "The server at http://127.0.0.1:" in said
    assert "s0           | hello" in said

    long = manage("run_playbook", book(tmp_path, "sleep 300"))
    read_until(long, "| $ sleep 300")
    server.send_signal(signal.SIGTERM)
    code, said = end_of(long)
    assert code == 2, said
    assert "The server has stopped; the work goes on when it runs again." in said


@pytest.mark.parametrize("options", [(), ("--no-wait",)])
def test_ctrl_c_stops_it_at_once_and_leaves_no_process(
    manage: Start, tmp_path: Path, options: tuple[str, ...]
) -> None:
    run = manage("run_playbook", book(tmp_path, "sleep 301"), *options)
    read_until(run, "| $ sleep 301")
    run.send_signal(signal.SIGINT)

    code, said = end_of(run)
    assert code == 130, said
    assert "it goes on when the server runs" in said
    assert "Traceback" not in said
    assert not any_process_runs("sleep\x00301\x00")


def http_status(url: str) -> int:
    """Ask a page and return its status, redirects not followed."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    finally:
        connection.close()


def any_process_runs(command: str) -> bool:
    """Look through the process table for a command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found = (entry / "cmdline").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if found == command:
                return True
    return False


def test_this_projects_own_checkout_can_be_checked(manage: Start, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for path in tracked_files():
        target = checkout / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    wanted = checkout / "pyproject.toml"
    # All unit tests take half a minute; that they can be run at all is what counts here.
    text = wanted.read_text(encoding="utf-8")
    assert text.count('"tests/unit"]') == 1
    wanted.write_text(text.replace('"tests/unit"]', '"tests/unit/test_dag.py"]'), encoding="utf-8")
    path = EXAMPLES / "playbooks" / "check_repository.yaml"
    code, said = end_of(
        manage("run_playbook", str(path), "--workspace", str(checkout), "--no-wait")
    )

    assert code == 0, said
    report = (checkout / "countersign-report" / "report.md").read_text(encoding="utf-8")
    assert "manage.py" in report or "orchestration" in report
    tests = json.loads((checkout / "countersign-report" / "tests.json").read_text("utf-8"))
    assert tests["status"] == "passed"
    assert "passed" in tests["output_tail"]
