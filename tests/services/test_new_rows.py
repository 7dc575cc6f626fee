"""Rows held back by a unit of work: never missed by a query, never written twice, never lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.utils import timezone

from orchestration.models import Comment, Task
from orchestration.models.inserts import insert_rows
from orchestration.models.rows import fetch_rows, new_row
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import SYSTEM, unit_of_work
from tests.factories import new_project


def new_task() -> Task:
    project = new_project()
    new = NewTask(text="work for an agent", route="direct")
    return create_task(project_id=project.pk, new=new, actor=SYSTEM)


def comment(task: Task, body: str) -> Comment:
    return new_row(Comment, task=task, body=body, author="a test", created_at=timezone.now())


def bodies(task: Task) -> list[str]:
    return list(Comment.objects.filter(task=task).order_by("pk").values_list("body", flat=True))


@pytest.mark.django_db(transaction=True)
def test_query_sees_a_row_that_was_held_back() -> None:
    task = new_task()
    with unit_of_work(SYSTEM) as work:
        work.insert([comment(task, "held back")])
        assert bodies(task) == ["held back"]


@pytest.mark.django_db(transaction=True)
def test_hand_built_query_sees_a_row_that_was_held_back() -> None:
    task = new_task()
    with unit_of_work(SYSTEM) as work:
        work.insert([comment(task, "held back")])
        assert [one.body for one in fetch_rows(Comment, "task_id = %s", [task.pk])] == ["held back"]


@pytest.mark.django_db(transaction=True)
def test_rows_of_the_orm_in_between_take_no_key_that_was_given_out() -> None:
    task = new_task()
    with unit_of_work(SYSTEM) as work:
        work.insert([comment(task, "first"), comment(task, "second")])
        Comment.objects.create(task=task, body="third", author="the ORM")
        work.insert([comment(task, "fourth")])
        insert_rows([comment(task, "fifth")])
        work.insert([comment(task, "sixth")])
    assert sorted(bodies(task)) == ["fifth", "first", "fourth", "second", "sixth", "third"]


@pytest.mark.django_db(transaction=True)
def test_rows_of_a_transaction_that_fails_are_not_written_by_the_next() -> None:
    task = new_task()

    def fail() -> None:
        with unit_of_work(SYSTEM) as work:
            work.insert([comment(task, "lost")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with unit_of_work(SYSTEM) as work:
        work.insert([comment(task, "kept")])
    assert bodies(task) == ["kept"]


@pytest.mark.django_db(transaction=True)
def test_change_of_a_row_that_was_held_back_is_written_with_it() -> None:
    task = new_task()
    with unit_of_work(SYSTEM) as work:
        row = comment(task, "before")
        work.insert([row])
        row.body = "after"
        work.touch(row, "body")
    assert bodies(task) == ["after"]


@pytest.mark.django_db(transaction=True)
def test_writers_at_once_never_share_a_key() -> None:
    task = new_task()

    def write(number: int) -> list[int]:
        try:
            keys: list[int] = []
            for turn in range(10):
                with unit_of_work(SYSTEM) as work:
                    rows = [comment(task, f"{number} {turn} {place}") for place in range(5)]
                    work.insert(rows)
                    keys += [row.pk for row in rows]
            return keys
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        given = [key for keys in pool.map(write, range(4)) for key in keys]
    assert len(set(given)) == len(given) == Comment.objects.filter(task=task).count() == 200


def test_unknown_field_of_a_new_row_is_refused() -> None:
    with pytest.raises(TypeError, match="no field shape"):
        new_row(Comment, shape="round")
