"""Queries whose SQL is built once: the same answers as the ORM, and no silent misuse."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.test.utils import CaptureQueriesContext

from orchestration.models import Task, Verification
from orchestration.models.prepared import Prepared
from tests.factories import drive, new_project, step, submit_plan

pytestmark = pytest.mark.django_db
FIELDS = ("pk", "verify", "created_at", "is_superseded")


@Prepared
def two_trees(first_id: int, second_id: int) -> QuerySet[Any, Any]:
    rows = Task.objects.filter(Q(root=first_id) | Q(pk=first_id) | Q(root=second_id))
    return rows.order_by("pk").values_list(*FIELDS)


@Prepared
def outcomes_of(root_id: int) -> QuerySet[Any, Any]:
    rows = Verification.objects.filter(task__root=root_id).order_by("outcome")
    return rows.values_list("outcome").annotate(Count("pk"))


def test_it_answers_what_the_orm_answers_for_each_of_its_arguments() -> None:
    project = new_project("demo")
    roots = [submit_plan(project, step("a"), step("b")) for _ in range(2)]
    drive(project)
    for root, other in (roots, reversed(roots)):
        expected = Task.objects.filter(Q(root=root) | Q(pk=root.pk) | Q(root=other))
        assert two_trees(root.pk, other.pk) == list(expected.order_by("pk").values_list(*FIELDS))
        rows = Verification.objects.filter(task__root=root).order_by("outcome")
        assert outcomes_of(root.pk) == list(rows.values_list("outcome").annotate(Count("pk")))


def test_it_runs_as_one_statement() -> None:
    two_trees(1, 2)
    with CaptureQueriesContext(connection) as seen:
        assert two_trees(3, 4) == []
    assert len(seen) == 1


def test_a_query_that_drops_an_argument_is_refused() -> None:
    @Prepared
    def careless(root_id: int, phase: int) -> QuerySet[Any, Any]:
        return Task.objects.filter(root=root_id).values_list("pk")

    with pytest.raises(TypeError, match="careless does not pass each argument on"):
        careless(1, 2)


def test_a_query_for_whole_rows_is_refused() -> None:
    @Prepared
    def whole(root_id: int) -> QuerySet[Any, Any]:
        return Task.objects.filter(root=root_id)

    with pytest.raises(TypeError, match="names no fields"):
        whole(1)
