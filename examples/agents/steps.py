"""What executor and reviewer read of a step: its command, and what the steps before it made."""

import re
import shlex
from pathlib import Path

from countersign import Countersign

COMMAND = re.compile(r"`([^`]+)`")


def command_of(text: str) -> list[str]:
    """Give the command that stands between backquotes. Errors: ValueError without one."""
    found = COMMAND.search(text)
    if found is None:
        raise ValueError("the step names no command between backquotes")
    return shlex.split(found[1])


def fetch_needed(server: Countersign, task_url: str, folder: Path) -> list[str]:
    """Fetch the locked artifacts of everything that a step needs, the farthest first.

    Return the hand-offs that came with them: read those before you begin.
    """
    told: list[str] = []
    tasks = task_url.rpartition("/")[0]
    for needed in server.get(task_url)["depends_on"]:
        before = server.get(f"{tasks}/{needed}?expand=all")
        told += fetch_needed(server, f"{tasks}/{needed}", folder)
        told += [one["body"] for one in before["comments"] if one["comment_type"] == "handoff"]
        for artifact in before["artifacts"]:
            name = Path(artifact["name"]).name
            (folder / name).write_bytes(server.read(artifact["content_url"]))
    return told
