"""Look at a pooled connection instead of asking its server whether it is still there.

Django's check is an empty statement, one round trip a request. What ends a connection, a restart
or an administrator, also closes its socket, and a closed socket can be read: that costs a look.
"""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL behind a pool whose dead connections are replaced before anybody meets them."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Take a connection from the pool, one that its server has not closed.

        Errors: OperationalError when none can be had.
        """
        connection = super().get_new_connection(conn_params)
        while self.pool and has_news(connection):
            # Between two uses a server speaks to say goodbye; the pool replaces what is closed.
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection


def has_news(connection: Any) -> bool:
    """Whether something can be read from an idle connection."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
