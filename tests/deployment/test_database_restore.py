"""The database comes back after a test that commits, also where triggers refuse deletes."""

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

APPEND_ONLY = {
    "sqlite": [
        "CREATE TABLE ledger (id integer)",
        "CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'kept'); END",
    ],
    "postgresql": [
        "CREATE TABLE ledger (id integer)",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'kept'; END $$",
        "CREATE TRIGGER ledger_kept BEFORE DELETE OR TRUNCATE ON ledger EXECUTE FUNCTION refuse()",
    ],
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt", [1, 2])
def test_committed_rows_and_tables_are_gone_for_the_next_test(attempt: int) -> None:
    assert not get_user_model().objects.exists()
    assert "ledger" not in connection.introspection.table_names()
    get_user_model().objects.create_user("someone")
    with connection.cursor() as cursor:
        for statement in APPEND_ONLY[connection.vendor]:
            cursor.execute(statement)
        cursor.execute("INSERT INTO ledger VALUES (%s)", [attempt])
