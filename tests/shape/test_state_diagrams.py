"""The drawn state machines are the ones the code has."""

from tests.shape.state_diagrams import MACHINES, TARGET, draw_states


def test_the_state_diagrams_are_drawn_from_the_tables() -> None:
    assert TARGET.read_text(encoding="utf-8") == draw_states(), (
        "docs/states.md is old: run python -m tests.shape.state_diagrams"
    )


def test_every_machine_starts_where_its_diagram_says() -> None:
    assert all(first in moves for _, first, _, moves in MACHINES)
