"""Retry a whole unit of work that the database refused for a passing reason.

Lock order makes deadlocks rare, not impossible: a finished parent locks its own parent after it.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, transaction

logger = logging.getLogger(__name__)
ATTEMPTS = 6

P = ParamSpec("P")
R = TypeVar("R")


def retry_on_deadlock(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function that opens its own transaction again when it deadlocked or was locked out.

    Inside another transaction nothing is retried: the outermost unit of work has to be.
    """

    @functools.wraps(function)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
        for attempt in range(ATTEMPTS):
            try:
                return function(*args, **kwargs)
            except OperationalError as error:
                inside = transaction.get_connection().in_atomic_block
                if inside or attempt == ATTEMPTS - 1 or not _is_passing(error):
                    raise
                logger.info("retrying %s after: %s", function.__name__, error)
                time.sleep(random.uniform(0.005, 0.03) * (attempt + 1))  # noqa: S311  # jitter
        raise AssertionError("unreachable")

    return repeated


def _is_passing(error: OperationalError) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("deadlock", "locked", "serialize", "lock timeout"))
