"""Prometheus metrics: what the rows say now, and what the API refused.

The numbers are totals over all projects; no project, task or agent is named.
Source: DESIGN sections 13 ("409 and 422 are only counted") and 19.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from orchestration.models import Assignment, Decision, Project, Task
from orchestration.services.assignments import queue_depth
from orchestration.services.audit import sealer_lag_seconds
from orchestration.services.health import canary_age_seconds
from orchestration.states import AssignmentStatus, DecisionStatus, ProjectStatus, TaskStatus

registry = CollectorRegistry()
refusals = Counter(
    "countersign_api_refusals",
    "Requests that this process refused, by HTTP status and code.",
    ["status", "code"],
    registry=registry,
)


def count_refusal(status: int, code: str) -> None:
    """Count one refused request."""
    refusals.labels(status=str(status), code=code).inc()


class RowsCollector(Collector):
    """Read the state of the system from its rows at every scrape."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one family a kind of row."""
        yield _by_status("countersign_projects", "Projects by state.", Project, ProjectStatus)
        yield _by_status("countersign_tasks", "Tasks by state.", Task, TaskStatus)
        yield _by_status(
            "countersign_assignments", "Assignments by state.", Assignment, AssignmentStatus
        )
        yield _by_status("countersign_decisions", "Decisions by state.", Decision, DecisionStatus)
        depth = queue_depth()
        workers = GaugeMetricFamily(
            "countersign_worker_assignments", "What our own workers could take and hold.",
            labels=["state"],
        )  # fmt: skip
        for state, count in depth.items():
            workers.add_metric([state], count)
        yield workers
        yield GaugeMetricFamily(
            "countersign_sealer_lag_seconds",
            "Age of the oldest audit event that is not sealed.",
            value=sealer_lag_seconds(),
        )
        age = canary_age_seconds()
        yield GaugeMetricFamily(
            "countersign_canary_age_seconds",
            "Time since a worker last answered the canary; -1 when none ever did.",
            value=-1 if age is None else age,
        )


def _by_status(
    name: str,
    text: str,
    model: type[Project] | type[Task] | type[Assignment] | type[Decision],
    states: type[ProjectStatus] | type[TaskStatus] | type[AssignmentStatus] | type[DecisionStatus],
) -> GaugeMetricFamily:
    """Count rows by state; a state without rows is 0, not missing."""
    counted = dict(model.objects.order_by().values_list("status").annotate(count=Count("pk")))
    family = GaugeMetricFamily(name, text, labels=["status"])
    for state in states:
        family.add_metric([state.value], counted.get(state.value, 0))
    return family


registry.register(RowsCollector())
