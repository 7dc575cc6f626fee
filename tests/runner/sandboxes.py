"""Which mechanisms hold on the machine that runs the tests, and why the others do not."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from orchestration.runner.probing import KINDS, Finding, try_kind
from orchestration.runner.sandbox import Kind


@functools.cache
def findings() -> dict[Kind, Finding]:
    """Try every mechanism once a process."""
    with tempfile.TemporaryDirectory() as secret:
        return {kind: try_kind(kind, [Path(secret)]) for kind in KINDS}


def kinds_that_hold() -> list[Kind]:
    """List the mechanisms that can be tested here."""
    return [kind for kind, finding in findings().items() if finding.sandbox is not None]


def say_what_holds() -> str:
    """Say in a line what is tested here, and of the rest why not."""
    words = [
        f"{kind}: {'tested' if finding.sandbox else 'not possible here, ' + finding.why}"
        for kind, finding in findings().items()
    ]
    return "Sandbox: " + "; ".join(words)
