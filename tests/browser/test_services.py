"""What Sir sees when web, worker and scheduler are processes on PostgreSQL and Redis.

The tests are those of the one-process installation; only the site is another.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.site import ServicesSite
from tests.browser.test_board import test_one_event_swaps_one_node_and_keeps_its_place
from tests.browser.test_connection import test_lost_server_is_said_and_caught_up_with
from tests.browser.test_inbox import test_new_item_appears_and_the_counts_follow_in_every_tab
from tests.browser.test_triage import (
    test_of_two_tabs_one_wins_and_the_other_says_who_did,
    test_several_are_decided_together_and_each_says_what_became_of_it,
    test_twenty_items_by_keys_with_a_server_a_second_away,
)
from tests.services_up import PostgresServer, RedisServer

pytestmark = [pytest.mark.browser, pytest.mark.faults]
__all__ = [
    "test_lost_server_is_said_and_caught_up_with",
    "test_new_item_appears_and_the_counts_follow_in_every_tab",
    "test_of_two_tabs_one_wins_and_the_other_says_who_did",
    "test_one_event_swaps_one_node_and_keeps_its_place",
    "test_several_are_decided_together_and_each_says_what_became_of_it",
    "test_twenty_items_by_keys_with_a_server_a_second_away",
]


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, private_postgres: PostgresServer
) -> Iterator[ServicesSite]:
    """One installation for all of them."""
    with RedisServer() as redis:
        started = ServicesSite(
            tmp_path_factory.mktemp("services") / "data",
            database_url=private_postgres.create_database("browser"),
            redis_url=f"{redis.url}/0",
        )
        started.start()
        yield started
        started.stop()
