"""How many tests an earlier run of the same command had, read from what was stored of it.

The run before is the newest one of accepted work, and any of this task itself: who deletes failing
tests in a fix is held against what ran before the fix.
Source: DESIGN section 8 ("Layers": the counts of the previous run), CASES A-01, A-05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from orchestration.models import Task, Verification
from orchestration.rules.run_counts import read_counts
from orchestration.states import TaskStatus

MOST_OWN = 50
"""Earlier runs of one task that are read, the newest."""


def runs_with_fewer_tests(task: Task, runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the runs that had fewer tests than an earlier run of the same command.

    Shape: `{argv, exit_code, output_tail, at, total, earlier}`, each command once; nothing where no
    earlier run is known, or where one of the two does not tell its counts. Costs two queries a
    command that ran tests.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for run in runs:
        counts = read_counts(run["output_tail"]) if run.get("argv") else None
        argv = tuple(run.get("argv") or ())
        if counts is None or argv in found:
            continue
        total = counts.passed + counts.failed
        earlier = earlier_total(task, argv)
        if earlier is not None and total < earlier:
            found[argv] = {
                "argv": list(argv), "exit_code": run.get("exit_code"), "total": total,
                "output_tail": run["output_tail"], "at": run.get("at", ""), "earlier": earlier,
            }  # fmt: skip
    return list(found.values())


def earlier_total(task: Task, argv: Sequence[str]) -> int | None:
    """How many tests the earlier run of a command had; None where there was none."""
    same = Verification.objects.filter(command={"argv": list(argv)}, exit_code__isnull=False)
    accepted = same.filter(
        task__project_id=task.project_id, task__status=TaskStatus.DONE.value
    ).exclude(task=task)
    known = [*_totals(accepted.order_by("-pk")[:1]), *_totals(_own(same, task))]
    return max(known, default=None)


def _own(same: QuerySet[Verification], task: Task) -> QuerySet[Verification]:
    return same.filter(task=task).order_by("-pk")[:MOST_OWN]


def _totals(rows: Iterable[Verification]) -> list[int]:
    counted = [read_counts(row.output_tail) for row in rows]
    return [one.passed + one.failed for one in counted if one is not None]
