"""The measures over REST: each with its count; a figure is null below ten cases."""

from __future__ import annotations

from orchestration.models import Project
from orchestration.services.intake import submit_message
from orchestration.services.work import SYSTEM
from tests.api.callers import Caller

INSIGHTS = "/api/projects/demo/insights"


def test_figures_come_with_their_counts(project: Project, agent: Caller, sir: Caller) -> None:
    for _ in range(3):
        submit_message(project_id=project.pk, text="谢谢", actor=SYSTEM)
    held = agent.read(INSIGHTS)
    assert held == sir.read(INSIGHTS)
    assert held["enough"] == 10
    assert held["traffic"]["messages"] == held["traffic"]["direct_by_rule"] == 3
    assert held["traffic"]["tokens_per_message"] is None
    assert held["rework"]["with_handshake"] == {"hits": 0, "cases": 0, "share": None}
    assert set(held["trust"]) == {"low", "partial", "high"}
    assert held["deviations"]["by_category"] == {"added": 0, "skipped": 0, "changed": 0}
    assert held["findings"]["scope"] == {"hits": 0, "cases": 0, "share": None}
    assert set(held["findings"]) == {"defect", "scope", "granularity", "assumption"}
    assert set(held["failed_anchors"]) == {"command", "file", "build", "test"}
    assert held["decisions"] == {"total": 0, "tasks": 0, "per_task": None, "by_kind": []}


def test_other_projects_measures_are_hidden(project: Project, outsider: Caller) -> None:
    assert outsider.get(INSIGHTS).status_code == 404
