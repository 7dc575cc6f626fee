"""The prompt of every seat, in both languages, byte for byte.

`COUNTERSIGN_WRITE_GOLDEN=1 python -m pytest tests/prompts/test_golden.py` writes the files anew;
read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestration.states import Seat
from tests.prompts.sample import TEXTS, golden_intent, golden_name, golden_prompt

GOLDEN = Path(__file__).parent / "golden"


INTENT = "auditor_intent"


def compared(made: str, name: str) -> None:
    """Compare a prompt with its golden file, or write that."""
    path = GOLDEN / name
    if os.environ.get("COUNTERSIGN_WRITE_GOLDEN") == "1":
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


@pytest.mark.django_db
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("seat", Seat)
def test_prompt_is_the_golden_one(seat: Seat, language: str) -> None:
    compared(golden_prompt(language, seat), golden_name(language, seat.value))


@pytest.mark.django_db
@pytest.mark.parametrize("language", TEXTS)
def test_prompt_about_an_understanding_is_the_golden_one(language: str) -> None:
    compared(golden_intent(language), golden_name(language, INTENT))


def test_every_role_has_a_golden_file_in_each_language_and_no_other_is_there() -> None:
    roles = [*(seat.value for seat in Seat), INTENT]
    wanted = {golden_name(language, role) for language in TEXTS for role in roles}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
