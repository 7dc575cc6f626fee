"""The prompt of every seat, in both languages, byte for byte.

`COUNTERSIGN_WRITE_GOLDEN=1 python -m pytest tests/prompts/test_golden.py` writes the files anew;
read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestration.states import Seat
from tests.prompts.sample import TEXTS, golden_name, golden_prompt

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.django_db
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("seat", Seat)
def test_prompt_is_the_golden_one(seat: Seat, language: str) -> None:
    made = golden_prompt(language, seat)
    path = GOLDEN / golden_name(language, seat)
    if os.environ.get("COUNTERSIGN_WRITE_GOLDEN") == "1":
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


def test_every_seat_has_a_golden_file_in_each_language_and_no_other_is_there() -> None:
    wanted = {golden_name(language, seat) for language in TEXTS for seat in Seat}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
