#!/usr/bin/env python3
"""A small agent: claims steps from Countersign, does them with a command, hands the work in.

    agent.py --token TOKEN [--url http://127.0.0.1:8000] [--limit 1] [-- COMMAND ARGUMENT…]

The command reads the task's text on standard input; what it prints is the work. It may be a model's
command line. Without one, the work is a count of the text's words. Only the standard library.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request
from typing import Any

Json = dict[str, Any]


class Countersign:
    """The server, as far as an agent needs it."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token

    def call(self, path: str, body: Json, key: str = "") -> Any:
        """Send a request. Return the answer, or None when there is nothing (204)."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key  # a repeat after a lost answer does nothing twice
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            raise SystemExit(f"{problem['code']}: {problem['detail']}") from None


def do_work(command: list[str], text: str) -> tuple[str, Json | None]:
    """Do the work of a task. Return what came of it, and the tool call to record, if any."""
    if not command:
        words = collections.Counter(re.findall(r"\w+", text.lower())).most_common()
        return "\n".join(f"{count} {word}" for word, count in words) or "no words", None
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)  # noqa: S603
    tail = (done.stdout + done.stderr)[-8000:]
    call = {"tool": command[0], "command": command, "exit_code": done.returncode}
    return done.stdout or "nothing was printed", {**call, "output_tail": tail}


def work_on(server: Countersign, held: Json, command: list[str], *, more: bool) -> Any:
    """Work on one assignment and hand it in. Return the next one, taken with the result."""
    here, lease = f"/api/assignments/{held['id']}", {"lease_token": held["lease_token"]}
    ended = threading.Event()

    def keep_alive() -> None:
        while not ended.wait(60):
            server.call(f"{here}/heartbeat", lease)

    threading.Thread(target=keep_alive, daemon=True).start()
    made, call = do_work(command, held["description"] or held["title"])
    ended.set()
    result = {**lease, **({"claim_next": {"seats": ["executor"]}} if more else {})}
    if call is not None:
        server.call(f"{here}/tool-calls", {**lease, "calls": [call]})
    if call is not None and call["exit_code"]:
        result |= {"status": "failed", "detail": f"{command[0]}: exit {call['exit_code']}"}
    else:
        comment = "Decisions: none. Problems: none. Advice: the work is the output."
        output = {"type": "document", "title": "Work", "content": made}
        result |= {"status": "review", "output": output, "comment": comment}
    answer = server.call(f"{here}/result", result, key=f"result-{held['lease_token']}")
    print(f"{held['task_key']}: {answer['task_status']}", flush=True)
    return answer["next"]


def main() -> None:
    """Claim, work, and go on until the limit, or until nothing has come for half a minute."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default=os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--token", default=os.environ.get("COUNTERSIGN_TOKEN", ""))
    parser.add_argument("--limit", type=int, default=0, help="assignments to do; 0 is no limit")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    server, held, left = Countersign(given.url, given.token), None, given.limit or float("inf")
    while left:
        held = held or server.call("/api/assignments/claim", {"seats": ["executor"], "wait": 30})
        if held is None:
            break
        left -= 1
        held = work_on(server, held, given.command, more=left > 0)


if __name__ == "__main__":
    main()
