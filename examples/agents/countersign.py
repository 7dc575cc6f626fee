"""What every example agent needs of Countersign: calls, claims, a lease that is kept alive.

Only the standard library. `planner.py`, `executor.py` and `qa.py` use it; copy it into yours.
"""

import argparse
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Work = Callable[["Countersign", Json], Json]
HEARTBEAT_SECONDS = 60


class Refused(Exception):
    """A problem document: `code` and `detail` say why, `status` is the HTTP one."""

    def __init__(self, problem: Json) -> None:
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.problem = problem


class Countersign:
    """The server as an agent sees it. Shape: `options` is what the command line said."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.url, self.token, self.options = options.url.rstrip("/"), options.token, options

    def get(self, path: str) -> Any:
        """Read a document."""
        return json.loads(self.read(path))

    def read(self, path: str) -> bytes:
        """Read bytes, as an artifact's content."""
        return self._send(urllib.request.Request(self.url + path, headers=self._headers()))  # noqa: S310

    def post(self, path: str, body: Json, key: str = "") -> Any:
        """Send a document. Return the answer, or None when there is nothing (204).

        With a key a repeat after a lost answer does nothing twice.
        """
        headers = {**self._headers(), "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)  # noqa: S310
        return json.loads(self._send(request) or b"null")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def _send(self, request: urllib.request.Request) -> bytes:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error)) from None


def work_for(seats: list[str], description: str, work: Work, *options: tuple[str, Json]) -> None:
    """Claim work of some seats and do it, until none has come for the time that is given.

    `work` gets the server and the claimed assignment and returns the seat's result. What it raises
    is told as the failure of the assignment. Options are `(flag, settings)` for the command line.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", default=os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--token", default=os.environ.get("COUNTERSIGN_TOKEN", ""))
    parser.add_argument("--rounds", type=int, default=0, help="claims without work before it ends")
    for flag, settings in options:
        parser.add_argument(flag, **settings)
    given = parser.parse_args()
    server, idle = Countersign(given), 0
    while not given.rounds or idle < given.rounds:
        held = server.post("/api/assignments/claim", {"seats": seats, "wait": 10})
        idle = 0 if held else idle + 1
        while held:
            held = _do(server, held, work, seats)


def _do(server: Countersign, held: Json, work: Work, seats: list[str]) -> Any:
    """Do one assignment. Return the next one, taken with the result."""
    here, lease = f"/api/assignments/{held['id']}", {"lease_token": held["lease_token"]}
    ended = threading.Event()

    def keep_alive() -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            server.post(f"{here}/heartbeat", lease)

    threading.Thread(target=keep_alive, daemon=True).start()
    try:
        result = work(server, held)
    except (OSError, ValueError, LookupError) as error:
        if held["seat"] not in ("executor", "fixer"):
            server.post(f"{here}/release", {**lease, "reason": str(error)[:500]})
            raise
        result = {"status": "failed", "detail": f"{type(error).__name__}: {error}"}
    finally:
        ended.set()
    body = {**lease, **result, "claim_next": {"seats": seats}}
    answer = server.post(f"{here}/result", body, key=f"result-{held['lease_token']}")
    print(f"{held['seat']} {held['task_key']}: {answer['task_status']}", flush=True)
    return answer["next"]
