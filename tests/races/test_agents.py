"""Two agents are made at the same moment."""

from __future__ import annotations

import pytest

from orchestration.models import Agent
from orchestration.services.agents import create_agent
from tests.races.contest import SIR, on_both, refusals, rivals

pytestmark = on_both
ROUNDS = 5


@pytest.mark.parametrize(("one", "two"), [("Tester", "tester"), ("Größe", "GRÖSSE")])
def test_of_two_names_that_differ_in_case_one_is_taken(one: str, two: str) -> None:
    with rivals(2) as fire:
        for number in range(ROUNDS):
            outcomes = fire(
                lambda number=number: create_agent(name=f"{one}{number}", actor=SIR),
                lambda number=number: create_agent(name=f"{two}{number}", actor=SIR),
            )
            assert [refused.code for refused in refusals(outcomes)] == ["name_taken"]
    assert Agent.objects.count() == ROUNDS
