"""What the start made is out of the collector's sight; what comes later is not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from config.collector import set_start_aside


class Cycle:
    """Holds itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _seen_again() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_full_collection_passes_over_what_the_start_made() -> None:
    before = len(gc.get_objects())
    set_start_aside()
    assert gc.get_freeze_count() > before / 2
    assert len(gc.get_objects()) < before / 10


def test_rubbish_from_before_is_taken_away_first_and_from_after_as_ever() -> None:
    early = weakref.ref(Cycle())
    set_start_aside()
    late = weakref.ref(Cycle())
    gc.collect()
    assert early() is None
    assert late() is None
