"""docs/agents.md, run as it stands: each request in a shell, each reply compared with what came.

In a documented reply, JSON or Markdown, `…` matches anything, also at the end of a text; members
may be left out.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import serving
from tests.deployment.processes import ROOT, command_environment

GUIDE = ROOT / "docs" / "agents.md"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVER = "http://127.0.0.1:8000"
ANYTHING = "…"
STATUS = "\nHTTP "
BLOCK_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Block:
    """What the guide tells the reader to type, and the reply that it shows, if any."""

    script: str
    reply: Any = None
    status: str = ""
    kind: str = "json"


def read_json(text: str) -> Any:
    """Read the JSON that a block printed, after whatever stood before it."""
    return json.loads(text[text.index("{") :])


READERS: Mapping[str, Callable[[str], Any]] = {"json": read_json, "markdown": str.strip}


def blocks() -> list[Block]:
    """Read the guide. Errors: AssertionError for a fence that would not be run."""
    found: list[Block] = []
    for kind, info, text in FENCE.findall(GUIDE.read_text(encoding="utf-8")):
        assert kind in ("sh", *READERS), kind
        if kind == "sh":
            found.append(Block(text))
        else:
            found[-1] = Block(found[-1].script, READERS[kind](text), info.strip(), kind)
    return found


class Shell:
    """One shell for the whole page, so that its variables stay."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            ["bash"],  # noqa: S607  # the reader's own
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, script: str) -> str:
        """Run a block to its end. Return what it prints. Errors: AssertionError when it fails."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{script}\nprintf '\\n#end %s\\n' $?\n")
        process.stdin.flush()
        said: list[str] = []
        for line in process.stdout:
            if line.startswith("#end "):
                assert line == "#end 0\n", "".join(said)
                return "".join(said)
            said.append(line)
        raise AssertionError("the shell ended: " + "".join(said))

    def close(self) -> None:
        """End it."""
        self.process.communicate("exit\n", timeout=BLOCK_SECONDS)


@pytest.fixture
def shell(tmp_path: Path, services: Mapping[str, str]) -> Iterator[Shell]:
    """A shell beside a server that was just started; curl tells each status after the reply."""
    (tmp_path / ".curlrc").write_text('write-out = "\\nHTTP %{http_code}\\n"\n')
    with serving(tmp_path / "data", services, project="") as server:
        known = {**services, "CURL_HOME": str(tmp_path)}
        environment = command_environment(server.data_dir, known)
        shell = Shell(environment | {"SERVED": server.url})
        yield shell
        shell.close()


def differences(documented: Any, came: Any, path: str = "") -> list[str]:
    """List where a reply is not what the guide shows."""
    if documented == ANYTHING:
        return []
    if isinstance(documented, dict) and isinstance(came, dict):
        return [
            found
            for key, held in documented.items()
            for found in (
                differences(held, came[key], f"{path}.{key}")
                if key in came
                else [f"{path}.{key} is missing"]
            )
        ]
    if isinstance(documented, list) and isinstance(came, list) and len(documented) == len(came):
        pairs = zip(documented, came, strict=True)
        return [
            found
            for place, (one, other) in enumerate(pairs)
            for found in differences(one, other, f"{path}[{place}]")
        ]
    is_prefix = isinstance(documented, str) and documented.endswith(ANYTHING)
    if is_prefix and isinstance(came, str) and came.startswith(documented[:-1]):
        return []
    return [] if documented == came else [f"{path}: {came!r}, not {documented!r}"]


@pytest.mark.faults
def test_guide_is_true_from_its_first_line_to_its_last(shell: Shell) -> None:
    compared = 0
    for block in blocks():
        said = shell.run(block.script.replace(SERVER, "$SERVED"))
        if block.reply is None:
            continue
        text, _, status = said.rstrip().rpartition(STATUS)
        assert status == block.status, f"{block.script}\n{said}"
        found = differences(block.reply, READERS[block.kind](text))
        assert found == [], f"{block.script}\n{said}"
        compared += 1
    assert compared >= 20


def test_readme_and_guide_make_agents_of_different_names() -> None:
    made = [
        set(re.findall(r"create_agent ([a-z][\w-]*)", (ROOT / name).read_text(encoding="utf-8")))
        for name in ("README.md", "docs/agents.md")
    ]
    assert all(made)
    assert not made[0] & made[1]


def test_every_request_of_the_guide_shows_its_reply() -> None:
    for block in blocks():
        asked = block.script.count("curl -s")
        unseen = block.script.count("> /tmp/held.json") + block.script.count("> /tmp/task.json")
        unseen += block.script.count("| grep -q")
        assert asked - unseen == (block.reply is not None), block.script


@pytest.mark.parametrize(
    ("documented", "came", "is_same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": "…"}, {"a": [1]}, True),
        ({"a": "up/…"}, {"a": "up/1"}, True),
        ({"a": "up/…"}, {"a": "down/1"}, False),
        ({"a": 1}, {}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": [{"b": None}]}, {"a": [{"b": 0}]}, False),
    ],
)
def test_comparison_finds_what_differs(documented: Any, came: Any, is_same: Any) -> None:
    assert (differences(documented, came) == []) is is_same
