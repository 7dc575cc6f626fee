#!/usr/bin/env python3
"""A reviewing agent: runs the command of a step again and compares what it makes.

    qa.py --token TOKEN [--url http://127.0.0.1:8000] [--rounds 3] [--allow python3]

It believes nobody: the recorded exit code has to be 0, and the same command in a fresh folder has
to make the same bytes as were handed in. Whoever planned or executed may not review, so it needs a
token of another agent, with the scope `review`.
"""

import hashlib
import shlex
import subprocess
import tempfile
from pathlib import Path

from countersign import Countersign, Json, work_for
from steps import command_of, fetch_needed

PROGRAM_SECONDS = 120


def review(server: Countersign, held: Json) -> Json:
    """Judge one step. Errors: ValueError for a command that is not allowed here."""
    task = server.get(f"{held['task_url']}?expand=all")
    command = command_of(held["title"] + "\n" + held["description"])
    if command[0] not in server.options.allow:
        raise ValueError(f"{command[0]} is not allowed here")
    newest = {one["title"]: one for one in task["outputs"] if one["attempt"] == task["attempt"]}
    defects = [_failed(call) for call in task["tool_calls"] if call["exit_code"] not in (0, None)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fetch_needed(server, held["task_url"], folder)
        done = subprocess.run(  # noqa: S603  # the program is one that the operator allowed
            command, cwd=folder, capture_output=True, text=True, check=False,
            timeout=PROGRAM_SECONDS,
        )  # fmt: skip
        if done.returncode:
            defects.append(_defect("the command fails", f"exit {done.returncode}: {done.stderr}"))
        for title, output in newest.items():
            path = folder / title
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
            if digest != output["sha256"]:
                found = f"handed in {output['sha256']}, made here {digest}"
                defects.append(_defect(f"{title} is not what the command makes", found))
    print(f"{held['task_key']}: ran {shlex.join(command)[:80]}, {len(defects)} defects", flush=True)
    return {
        "verdict": "fail" if defects else "pass",
        "artifact_digests": [one["sha256"] for one in newest.values()],
        "defects": defects,
        "low_defects": "fix",
    }


def _failed(call: Json) -> Json:
    return _defect(f"recorded exit {call['exit_code']}", call["command"])


def _defect(title: str, evidence: str) -> Json:
    return {"severity": "high", "title": title[:300], "evidence": evidence[:4000]}


if __name__ == "__main__":
    allow = {"nargs": "+", "default": ["python3"], "help": "programs that may be run"}
    work_for(["qa"], __doc__.splitlines()[0], review, ("--allow", allow))
