"""The state tables: every state a key, every pair decided, the sets made from them consistent."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest

from orchestration import states
from orchestration.errors import IllegalTransition
from orchestration.states import (
    ASSIGNMENT_LIVE,
    ASSIGNMENT_MOVES,
    CONVERSATION_MOVES,
    DECISION_MOVES,
    DEFECT_MOVES,
    DEFECT_UNFINISHED,
    HANDSHAKE_MOVES,
    HANDSHAKE_OPEN,
    HANDSHAKE_PASSED,
    MASTER_VIEW,
    MAX_RETRIES_REASON,
    PLAN_MOVES,
    PROJECT_MOVES,
    TASK_HOLDS_SLOT,
    TASK_MOVES,
    TASK_TERMINAL,
    AssignmentStatus,
    ConversationStatus,
    DecisionStatus,
    DefectStatus,
    HandshakeStatus,
    PlanStatus,
    ProjectStatus,
    TaskStatus,
    require_move,
)

TABLES: dict[type[StrEnum], Mapping[Any, frozenset[Any]]] = {
    ProjectStatus: PROJECT_MOVES,
    TaskStatus: TASK_MOVES,
    AssignmentStatus: ASSIGNMENT_MOVES,
    DefectStatus: DEFECT_MOVES,
    PlanStatus: PLAN_MOVES,
    DecisionStatus: DECISION_MOVES,
    HandshakeStatus: HANDSHAKE_MOVES,
    ConversationStatus: CONVERSATION_MOVES,
}

# DESIGN section 4, written down once more by hand so that a slip in the tables shows.
EXPECTED: dict[type[StrEnum], dict[str, str]] = {
    ProjectStatus: {
        "active": "suspended safe_stop completed archived",
        "suspended": "active safe_stop archived",
        "safe_stop": "active archived",
        "completed": "active archived",
        "archived": "",
    },
    TaskStatus: {
        "pending": "claimed working waiting_human cancelled",
        "claimed": "working pending failed blocked waiting_human cancelled",
        "working": "pending review failed blocked waiting_human cancelled",
        "review": "done pending failed waiting_human cancelled",
        "blocked": "pending failed cancelled",
        "waiting_human": "working pending review failed cancelled",
        "done": "",
        "failed": "pending fatal cancelled",
        "fatal": "pending cancelled done",
        "cancelled": "",
    },
    AssignmentStatus: {
        "queued": "leased cancelled",
        "leased": "queued done failed expired cancelled",
        "done": "",
        "failed": "",
        "expired": "",
        "cancelled": "",
    },
    DefectStatus: {
        "open": "fix_approved awaiting_sir accepted_as_is void",
        "awaiting_sir": "fix_approved accepted_as_is reproposing rejected void",
        "reproposing": "awaiting_sir void",
        "fix_approved": "fixing void",
        "fixing": "fixed void",
        "fixed": "verified open void",
        "verified": "",
        "accepted_as_is": "",
        "rejected": "",
        "void": "",
    },
    PlanStatus: {
        "draft": "auditing needs_revision rejected",
        "auditing": "approved needs_revision rejected",
        "approved": "needs_revision",
        "needs_revision": "",
        "rejected": "approved",
    },
    DecisionStatus: {
        "open": "decided expired withdrawn",
        "decided": "",
        "expired": "",
        "withdrawn": "",
    },
    HandshakeStatus: {
        "awaiting_spawner": "awaiting_auditor awaiting_sir confirmed confirmed_with_correction "
        "rejected void",
        "awaiting_auditor": "awaiting_sir confirmed confirmed_with_correction rejected void",
        "awaiting_sir": "confirmed confirmed_with_correction rejected void",
        "confirmed": "",
        "confirmed_with_correction": "",
        "rejected": "",
        "void": "",
    },
    ConversationStatus: {
        "open": "awaiting_sir closed",
        "awaiting_sir": "closed",
        "closed": "",
    },
}
PAIRS = [
    (kind, source, target)
    for kind in TABLES
    for source, target in itertools.product(kind, repeat=2)
]
LEGAL = [pair for pair in PAIRS if pair[2] in EXPECTED[pair[0]][pair[1]].split()]
ILLEGAL = [pair for pair in PAIRS if pair not in LEGAL]
EVERY_TABLE = pytest.mark.parametrize("kind", list(TABLES))


@pytest.mark.parametrize(("kind", "source", "target"), LEGAL)
def test_a_legal_move_passes(kind: type[StrEnum], source: StrEnum, target: StrEnum) -> None:
    require_move(TABLES[kind], source, target, noun="thing")


@pytest.mark.parametrize(("kind", "source", "target"), ILLEGAL)
def test_an_illegal_move_names_the_legal_ones(
    kind: type[StrEnum], source: StrEnum, target: StrEnum
) -> None:
    with pytest.raises(IllegalTransition) as caught:
        require_move(TABLES[kind], source, target, noun="thing")
    assert caught.value.status == 409
    assert caught.value.allowed == sorted(EXPECTED[kind][source].split())
    assert caught.value.extra["current"] == str(source)


@EVERY_TABLE
def test_every_state_is_a_key(kind: type[StrEnum]) -> None:
    assert set(TABLES[kind]) == set(kind)


@EVERY_TABLE
def test_no_state_moves_to_itself(kind: type[StrEnum]) -> None:
    assert not [state for state, moves in TABLES[kind].items() if state in moves]


@EVERY_TABLE
def test_every_state_is_reached_from_the_first(kind: type[StrEnum]) -> None:
    reached: set[StrEnum] = {next(iter(kind))}
    frontier = set(reached)
    while frontier:
        frontier = {after for state in frontier for after in TABLES[kind][state]} - reached
        reached |= frontier
    assert reached == set(kind)


@EVERY_TABLE
def test_every_state_can_reach_an_end(kind: type[StrEnum]) -> None:
    table = TABLES[kind]
    ends = {state for state in kind if not table[state]}
    while True:
        before = {state for state in kind if state not in ends and table[state] & ends}
        if not before:
            break
        ends |= before
    assert ends == set(kind)


@EVERY_TABLE
def test_tables_cannot_be_changed(kind: type[StrEnum]) -> None:
    table: Any = TABLES[kind]
    with pytest.raises(TypeError):
        table[next(iter(kind))] = frozenset()


@EVERY_TABLE
def test_values_are_plain_names(kind: type[StrEnum]) -> None:
    assert all(state.value == state.name.lower() for state in kind)


def test_every_table_of_the_module_is_tested() -> None:
    tables = {name for name in vars(states) if name.endswith("_MOVES")}
    assert len(tables) == len(TABLES)


def test_terminal_tasks_are_those_without_moves() -> None:
    assert {state for state in TaskStatus if not TASK_MOVES[state]} == TASK_TERMINAL


def test_slots_are_held_by_claimed_and_working_only() -> None:
    assert {"claimed", "working"} == TASK_HOLDS_SLOT


def test_unfinished_defects_are_those_that_can_still_become_void() -> None:
    assert {s for s in DefectStatus if DefectStatus.VOID in DEFECT_MOVES[s]} == DEFECT_UNFINISHED


def test_an_open_handshake_is_one_that_can_still_become_void() -> None:
    can_end = {s for s in HandshakeStatus if HandshakeStatus.VOID in HANDSHAKE_MOVES[s]}
    assert can_end == HANDSHAKE_OPEN
    ends = {s for s in HandshakeStatus if not HANDSHAKE_MOVES[s]}
    assert {"rejected", "void"} == ends - HANDSHAKE_PASSED


def test_live_assignments_are_those_with_moves() -> None:
    assert {state for state in AssignmentStatus if ASSIGNMENT_MOVES[state]} == ASSIGNMENT_LIVE


def test_master_view_is_total() -> None:
    assert set(MASTER_VIEW) == set(TaskStatus)


@pytest.mark.parametrize(
    ("view", "members"),
    [
        ("PENDING", {"pending"}),
        ("IN_PROGRESS", {"claimed", "working", "review", "blocked", "waiting_human"}),
        ("COMPLETED", {"done"}),
        ("FAILED", {"failed"}),
        (MAX_RETRIES_REASON, {"fatal"}),
        ("CANCELLED", {"cancelled"}),
    ],
)
def test_master_view_groups_as_the_list_does(view: str, members: set[str]) -> None:
    assert {state for state in TaskStatus if MASTER_VIEW[state] == view} == members


def test_max_retries_reads_as_the_source_says() -> None:
    assert MAX_RETRIES_REASON == "FATAL_ERROR: MAX_RETRIES_EXCEEDED"


def test_only_a_human_or_a_cancel_leads_out_of_waiting_human() -> None:
    assert TaskStatus.DONE not in TASK_MOVES[TaskStatus.WAITING_HUMAN]
    assert TaskStatus.CLAIMED not in TASK_MOVES[TaskStatus.WAITING_HUMAN]
