"""Lists of ids find what `IN` finds, in one parameter on PostgreSQL."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from orchestration.models import Task
from tests.factories import drive, new_project, step, submit_plan

pytestmark = pytest.mark.django_db


def test_one_of_finds_what_in_finds() -> None:
    roots = [submit_plan(new_project(name), step("1"), step("2")) for name in ("one", "two")]
    drive()
    ids = [root.pk for root in roots]
    same = [(Q(pk__one_of=ids), Q(pk__in=ids)), (Q(root__one_of=ids), Q(root__in=ids))]
    for ours, plain in [*same, (Q(pk__one_of=ids[:1]) | Q(root__one_of=[]), Q(pk=ids[0]))]:
        found = list(Task.objects.filter(ours).order_by("pk"))
        assert found == list(Task.objects.filter(plain).order_by("pk"))
        assert found
    assert not Task.objects.filter(pk__one_of=[]).exists()


@pytest.mark.postgres
def test_any_number_of_ids_is_one_statement_to_postgresql() -> None:
    texts = set()
    for count in (3, 300):
        with CaptureQueriesContext(connection) as queries:
            assert not Task.objects.filter(pk__one_of=[10**9 + n for n in range(count)]).exists()
        texts.add(queries[0]["sql"].partition("ANY")[0])
        assert "ANY" in queries[0]["sql"]
    assert len(texts) == 1
