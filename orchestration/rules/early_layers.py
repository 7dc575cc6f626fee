"""L1 format and L2 logic of a hand-in, as findings; what fails here is judged no further.

Source: DESIGN section 8 ("Layers").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from orchestration.rules.contradictions import inconsistencies


class HandedIn(Protocol):
    """What is read of an output."""

    title: Any
    path: Any
    size_bytes: Any
    assertions: Any


def format_findings(outputs: Sequence[HandedIn], missing: Sequence[str]) -> list[str]:
    """List what L1 finds: artifacts that are missing, no output, or an empty one."""
    findings = [f"expected artifact is missing or empty: {name}" for name in missing]
    if not outputs:
        findings.append("there is no output")
    findings += [
        f"output is empty: {one.title}" for one in outputs if not one.size_bytes and not one.path
    ]
    return findings


def logic_findings(
    outputs: Sequence[HandedIn],
    *,
    changed: Sequence[str],
    runs: Sequence[Mapping[str, Any]],
    is_failure_planned: bool,
) -> list[str]:
    """List what L2 finds in itself; a failing run that the plan provides for is no failure."""
    findings = [f"changed after it was handed in: {path}" for path in changed]
    findings += inconsistencies([one for output in outputs for one in output.assertions], "review")
    if not is_failure_planned:
        findings += [f"{' '.join(run['argv'])}: {run['outcome']}" for run in runs if not run["ok"]]
    return findings
