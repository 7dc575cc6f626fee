#!/usr/bin/env python3
"""An executing agent: runs the command of a step and hands in the files that it made.

    executor.py --token TOKEN [--url http://127.0.0.1:8000] [--rounds 3] [--allow python3]

The command stands between backquotes in the step's text. It runs in a folder of its own, beside
the locked artifacts of the steps before, and only when its program is allowed. What ran is recorded
as a tool call, so that nobody has to believe it. Its token needs the scope `execute`.
"""

import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from countersign import Countersign, Json, work_for
from steps import command_of, fetch_needed

PROGRAM_SECONDS = 120


def execute(server: Countersign, held: Json) -> Json:
    """Do one step. Errors: ValueError without a command that is allowed."""
    command = command_of(held["title"] + "\n" + held["description"])
    allowed = server.options.allow
    if command[0] not in allowed:
        raise ValueError(f"{command[0]} is none of the allowed programs: {', '.join(allowed)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = fetch_needed(server, held["task_url"], folder)
        known = {path.name: path.read_bytes() for path in folder.iterdir()}
        record_run(server, held, command, folder)
        made = [
            path
            for path in sorted(folder.iterdir())
            if path.is_file() and known.get(path.name) != path.read_bytes()
        ]
        if not made:
            raise ValueError(f"{shlex.join(command)} made no file")
        for path in made:
            output = {"type": "data", "title": path.name, "content": path.read_text()}
            output["summary"] = f"made by {shlex.join(command)[:200]}"
            server.post(f"{held['task_url']}/outputs", output, key=f"{held['lease_token']}-{path}")
    handoff = {
        "completed": f"ran {command[0]} and handed in what it made",
        "artifacts": [path.name for path in made],
        "decisions": [
            {"what": f"read {len(told)} hand-offs first", "why": "they name what exists"}
        ],
        "problems": [],
        "advice": ["the files are in the artifacts of this step"],
    }
    return {"status": "review", "comment": handoff}


def record_run(server: Countersign, held: Json, command: list[str], folder: Path) -> None:
    """Run a command and record it. Errors: ValueError when it fails."""
    began = time.monotonic()
    done = subprocess.run(  # noqa: S603  # the program is one that the operator allowed
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS
    )
    call = {
        "tool": "shell",
        "command": command,
        "exit_code": done.returncode,
        "output_tail": (done.stdout + done.stderr)[-4000:],
        "duration_ms": int((time.monotonic() - began) * 1000),
    }
    body = {"lease_token": held["lease_token"], "calls": [call]}
    server.post(f"/api/assignments/{held['id']}/tool-calls", body)
    if done.returncode:
        raise ValueError(f"{command[0]}: exit {done.returncode}: {done.stderr[-300:]}")


if __name__ == "__main__":
    allow = {"nargs": "+", "default": ["python3"], "help": "programs that may be run"}
    work_for(["executor"], __doc__.splitlines()[0], execute, ("--allow", allow))
