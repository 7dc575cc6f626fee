"""Repair many rows in bounded batches; one that fails does not keep the others from their turn.

Source: STYLE section 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)
BATCH = 200


def repair_each(ids: Sequence[int], repair: Callable[[int], bool]) -> int:
    """Repair rows one by one, log one that fails and go on. Return how many were repaired."""
    count = 0
    for pk in ids:
        try:
            count += repair(pk)
        except Exception:
            logger.exception("row %s could not be repaired by %s", pk, repair)
    return count
