"""A connection that PostgreSQL ended while it lay in the pool costs nobody a request."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from orchestration.models.rows import fetch_values

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_connection_ended_in_the_pool_is_replaced_before_it_is_used() -> None:
    """A restarted server, an administrator: the next request must not meet what they closed."""
    [(process,)] = fetch_values("SELECT pg_backend_pid()")
    address = connection.connection.info.dsn
    connection.close()
    with psycopg.connect(address) as other:
        ended = other.execute("SELECT pg_terminate_backend(%s, 5000)", [process]).fetchone()
    assert ended == (True,)
    [(following,)] = fetch_values("SELECT pg_backend_pid()")
    assert following != process
