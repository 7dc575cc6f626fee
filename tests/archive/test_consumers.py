"""What a defect reaches: all of it is counted, a bounded part is listed, in a few queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.models import (
    Artifact,
    ArtifactContent,
    ArtifactRead,
    Defect,
    Project,
    Task,
    TaskDependency,
)
from orchestration.selectors.consumers import MOST_LISTED, dependents_of, readers_of
from orchestration.services.locked_defects import report_defect
from orchestration.services.work import Actor
from tests.factories import new_project, open_decision_of

pytestmark = pytest.mark.django_db
DEEP = 1_000


def tasks_of(project: Project, count: int) -> list[Task]:
    """Rows of steps, without their history."""
    rows = [
        Task(project=project, number=n, title=f"t{n}", step_key=str(n), status="done")
        for n in range(1, count + 1)
    ]
    return Task.objects.bulk_create(rows)


def chain(project: Project, count: int) -> Sequence[Task]:
    """Steps each of which needs the one before, and read what it locked."""
    rows = tasks_of(project, count)
    pairs = list(pairwise(rows))
    TaskDependency.objects.bulk_create(TaskDependency(task=b, requires=a) for a, b in pairs)
    content = ArtifactContent.objects.create(sha256="0" * 64, size_bytes=0, data=b"")
    made = Artifact.objects.bulk_create(
        Artifact(
            project=project, task=one, name="out.txt", version=1, size_bytes=0, content=content
        )
        for one in rows
    )
    reads = zip(made, rows[1:], strict=False)
    ArtifactRead.objects.bulk_create(ArtifactRead(artifact=a, task=b) for a, b in reads)
    return rows


def test_a_deep_chain_costs_a_few_queries_and_lists_its_beginning() -> None:
    rows = chain(new_project(), DEEP)
    first = Artifact.objects.get(task=rows[0])
    with CaptureQueriesContext(connection) as seen:
        needed, read = dependents_of(rows[0]), readers_of(first)
    assert len(seen) == 5
    assert needed.total == read.total == DEEP - 1
    wanted = [str(n) for n in range(2, MOST_LISTED + 2)]
    assert [one["step_key"] for one in needed.listed] == wanted
    assert [one["step_key"] for one in read.listed] == wanted
    assert read.listed[0]["artifacts"] == ["out.txt v1"]


def test_what_is_superseded_is_not_reached_and_readers_may_read_in_a_circle() -> None:
    rows = chain(new_project(), 4)
    last = Artifact.objects.get(task=rows[3])
    ArtifactRead.objects.create(artifact=last, task=rows[0])
    Task.objects.filter(pk=rows[1].pk).update(is_superseded=True, status="cancelled")
    Task.objects.filter(pk=rows[2].pk).update(status="pending")
    assert [one["step_key"] for one in dependents_of(rows[1]).listed] == ["4", "3"]
    found = readers_of(Artifact.objects.get(task=rows[0]))
    assert [(one["step_key"], one["effect"]) for one in found.listed] == [
        ("4", "to_reverify"), ("3", "freed"),
    ]  # fmt: skip
    assert found.total == 2


def test_a_defect_keeps_the_list_and_tells_sir_the_whole_number() -> None:
    project = new_project()
    rows = chain(project, MOST_LISTED + 51)
    artifact = Artifact.objects.get(task=rows[0])
    document = {"severity": "medium", "title": "a gap"}
    report_defect(artifact_id=artifact.pk, document=document, actor=Actor("human:sir"))
    defect = Defect.objects.get()
    assert (len(defect.impact), defect.impact_total) == (MOST_LISTED, MOST_LISTED + 50)
    item = open_decision_of(project)
    assert item.content["impact_total"] == MOST_LISTED + 50
