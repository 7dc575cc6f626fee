"""Pages cost the same queries over a sample and over many times as many rows."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration.models import Assessment, AuditSeal, Decision, Project, Task
from orchestration.selectors.audit import count_unsealed
from orchestration.selectors.board import read_traffic
from orchestration.selectors.master import SORTS, MasterFilter, list_master
from tests.bench.copies import Copier
from tests.bench.crowd import make_sample, query_counts

FEW, COPIES = 10, 24


@pytest.fixture
def sample(sir: User) -> Project:
    """A project with 25 roots in every state."""
    return make_sample(roots=FEW)


def test_pages_cost_the_same_for_many_times_the_rows(sample: Project, sir_client: Client) -> None:
    few = query_counts(sir_client)
    Copier(sample).copy(COPIES)
    assert Task.objects.filter(parent__isnull=True).count() == 25 * (COPIES + 1)
    assert AuditSeal.objects.count() > 5_000
    assert count_unsealed() == 0
    assert query_counts(sir_client) == few


def test_copies_are_rows_as_the_services_write_them(sample: Project) -> None:
    one = read_traffic(sample.pk)
    Copier(sample).copy(2)
    three = read_traffic(sample.pk)
    assert (three.messages, three.direct_by_rule) == (3 * one.messages, 3 * one.direct_by_rule)
    assert one.messages > FEW
    steps = Task.objects.filter(parent__isnull=False)
    assert all(step.parent.is_planned for step in steps.select_related("parent") if step.parent)
    asked = Decision.objects.filter(status="open").select_related("task__root")
    assert [one.task.root.title for one in asked if one.task and one.task.root] == [
        "a plan that waits for Sir"
    ] * 3
    assert not Assessment.objects.exclude(traffic_of=None).exclude(task__parent=None).exists()


def test_pages_of_the_list_hold_each_root_once_in_the_list_order(sample: Project) -> None:
    Copier(sample).copy(8)
    pages = [list_master(sample, page=number) for number in (1, 2, 3, 4)]
    assert [(len(rows), total) for rows, total in pages] == [
        (100, 225), (100, 225), (25, 225), (0, 225)
    ]  # fmt: skip
    listed = [one.task for rows, _total in pages for one in rows]
    assert len({task.pk for task in listed}) == 225
    groups = ["working", "pending", "done", "cancelled"]
    seen = [groups.index(task.status) for task in listed if task.status in groups]
    assert seen == sorted(seen)
    done = [task.number for task in listed if task.status == "done"]
    assert done == sorted(done, reverse=True)
    pending = [task.rank for task in listed if task.status == "pending"]
    assert pending == sorted(pending)


@pytest.mark.parametrize("sort", [name for name in SORTS if name])
def test_list_is_sorted_over_all_its_pages(sort: str, sample: Project) -> None:
    Copier(sample).copy(4)
    wanted = MasterFilter(sort=sort)
    listed = [one.task for page in (1, 2) for one in list_master(sample, wanted, page=page)[0]]
    keys = {"key": "number", "title": "title", "changed": "updated_at"}
    found = [getattr(task, keys[sort.lstrip("-")]) for task in listed]
    newest_first = sort in ("-key", "-title", "changed")
    assert len({task.pk for task in listed}) == 125
    assert found == sorted(found, reverse=newest_first)
