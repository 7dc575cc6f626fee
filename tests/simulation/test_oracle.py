"""The independent judge: both worked examples of source 002, the third failure, and Sir's words."""

from __future__ import annotations

import pytest

from orchestration.simulation.oracle import FATAL, Oracle
from orchestration.simulation.script import (
    Fault,
    Kind,
    ProjectScript,
    Rates,
    RootScript,
    StepScript,
    Trouble,
    Verdict,
    write_script,
)

CAUSE = Trouble(Fault.REPORTED, "TC-AUTH-001 failed")


def root(
    key: str, *after: str, kind: Kind = Kind.THREE_STEP, fails: int = 0, sir: Verdict | None = None
) -> RootScript:
    """Write one root."""
    failures = (CAUSE,) * fails
    return RootScript(key, len(key), kind, after, {"1": StepScript("1")}, failures, sir)


def oracle_of(*roots: RootScript) -> Oracle:
    """An oracle of some roots, ranked as they stand."""
    return Oracle(ProjectScript(1, {one.key: one for one in roots}))


def test_first_example_of_the_source_restarts_with_its_failure() -> None:
    oracle = oracle_of(root("task_auth", fails=1))
    expected = oracle.judge("task_auth")
    assert (expected.is_go, expected.action) == (False, "RESTART_FROM_STEP_2")
    assert (list(expected.tasks), expected.cause) == (["task_auth"], CAUSE)
    assert expected.changed == {"task_auth": "FAILED"}


def test_second_example_of_the_source_proceeds_to_the_next_task() -> None:
    oracle = oracle_of(root("task_auth"), root("task_payment"))
    assert oracle.state == {"task_auth": "IN_PROGRESS", "task_payment": "PENDING"}
    expected = oracle.judge("task_auth")
    assert (expected.action, list(expected.tasks)) == ("PROCEED_TO_NEXT_TASK", ["task_payment"])
    assert expected.changed == {"task_auth": "COMPLETED", "task_payment": "IN_PROGRESS"}
    assert oracle.judge("task_payment").action == "TERMINATE_SUCCESS"


@pytest.mark.parametrize(
    ("sir", "state", "behind"),
    [
        (Verdict.RETRY, "IN_PROGRESS", "PENDING"),
        (Verdict.AMEND, "IN_PROGRESS", "PENDING"),
        (Verdict.WAIVE, "COMPLETED", "IN_PROGRESS"),
        (Verdict.ABORT, "CANCELLED", "CANCELLED"),
    ],
)
def test_third_failure_in_a_row_is_sirs(sir: Verdict, state: str, behind: str) -> None:
    oracle = oracle_of(root("a", fails=3, sir=sir), root("bb", "a"))
    actions = [oracle.judge("a").action for _ in range(3)]
    assert actions == ["RESTART_FROM_STEP_2", "RESTART_FROM_STEP_2", "SUSPEND_FOR_HUMAN"]
    assert oracle.state == {"a": FATAL, "bb": "PENDING"}
    oracle.decide("a")
    assert oracle.state == {"a": state, "bb": behind}


def test_small_work_has_no_command_and_starts_what_waited_for_it() -> None:
    oracle = oracle_of(root("a", kind=Kind.DIRECT), root("bb", "a"))
    expected = oracle.judge("a")
    assert (expected.action, expected.changed["bb"]) == (None, "IN_PROGRESS")


def test_the_end_is_commanded_whatever_root_is_the_last() -> None:
    oracle = oracle_of(root("a"), root("bb", kind=Kind.DIRECT))
    assert oracle.judge("a").action == "PROCEED_TO_NEXT_TASK"
    assert oracle.judge("bb").action == "TERMINATE_SUCCESS"
    given_up = oracle_of(root("a"), root("bb", fails=3, sir=Verdict.ABORT))
    for key in ("a", "bb", "bb", "bb"):
        given_up.judge(key)
    expected = given_up.decide("bb")
    assert expected is not None
    assert (expected.action, expected.changed) == ("TERMINATE_SUCCESS", {"bb": "CANCELLED"})


def test_where_the_loop_did_nothing_its_end_is_not_commanded() -> None:
    assert oracle_of(root("a", kind=Kind.DIRECT)).judge("a").action is None


def test_nobody_decides_what_did_not_fail() -> None:
    with pytest.raises(AssertionError, match="nobody was to decide"):
        oracle_of(root("a")).decide("a")


def test_same_seed_writes_the_same_project() -> None:
    assert write_script(40, 7, Rates()) == write_script(40, 7, Rates())
    assert write_script(40, 7, Rates()) != write_script(40, 8, Rates())


def test_every_kind_of_trouble_is_written_somewhere() -> None:
    roots = write_script(300, 1, Rates(fail=0.4)).roots.values()
    steps = [step for one in roots for step in one.steps.values()]
    assert {trouble.fault for step in steps for trouble in step.troubles} == set(Fault)
    assert {one.kind for one in roots} == set(Kind)
    assert {one.sir for one in roots} >= set(Verdict)
    assert any(step.is_refuted for step in steps)
    assert any(step.worker_dies for step in steps)
