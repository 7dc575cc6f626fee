"""What a token of an agent may do, and which seats that opens.

Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from orchestration.states import Seat


class Scope(StrEnum):
    """A token's scopes. Every other one includes `observe`, which is reading."""

    OBSERVE = "observe"
    EXECUTE = "execute"
    PLAN = "plan"
    REVIEW = "review"
    ORCHESTRATE = "orchestrate"


SEATS_OF: Mapping[Scope, frozenset[Seat]] = MappingProxyType(
    {
        Scope.OBSERVE: frozenset(),
        Scope.EXECUTE: frozenset({Seat.EXECUTOR, Seat.FIXER}),
        Scope.PLAN: frozenset({Seat.PLANNER, Seat.SCORER}),
        Scope.REVIEW: frozenset({Seat.AUDITOR, Seat.QA, Seat.CROSS_VERIFIER, Seat.VALIDATOR}),
        Scope.ORCHESTRATE: frozenset(),
    }
)
"""Seats a scope lets an agent take; each seat belongs to exactly one scope."""
DEFAULT_SCOPES = (Scope.OBSERVE.value, Scope.EXECUTE.value)
"""What an agent gets when nothing is named: read, and execute steps."""
INDEPENDENT_SEATS = frozenset(SEATS_OF[Scope.REVIEW])
"""Seats closed to an agent that planned, executed or fixed anything in the lineage."""
MAKING_SEATS = frozenset({Seat.PLANNER, Seat.EXECUTOR, Seat.FIXER})
"""Seats whose holder made something, and so may not judge it."""


def scope_of(seat: Seat) -> Scope:
    """Return the scope that opens a seat."""
    return next(scope for scope, seats in SEATS_OF.items() if seat in seats)


def open_seats(scopes: Iterable[str]) -> frozenset[Seat]:
    """Return the seats that a token with these scopes may take."""
    held = set(scopes)
    return frozenset(
        seat for scope, seats in SEATS_OF.items() if scope.value in held for seat in seats
    )
