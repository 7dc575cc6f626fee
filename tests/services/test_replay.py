"""Replay: the board at any event, from the trail alone; the rebuilt present is the real one."""

from __future__ import annotations

import pickle

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.models import AuditSeal, Project, Task
from orchestration.rules.replay import PastBoard, replay
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import read_traffic
from orchestration.selectors.replay import past_graph, read_past, span_of
from orchestration.selectors.replay_checkpoints import Checkpoints
from orchestration.services.audit import floor, seal_events
from orchestration.services.importing import import_master_list
from orchestration.services.intake import NewTask, create_task, submit_message
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)
from tests.replaying import assert_rebuilt_is_present

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")


@pytest.fixture(autouse=True)
def _sealer_from_scratch() -> None:
    floor.reset()


@pytest.fixture
def project() -> Project:
    """A project named demo."""
    return new_project("demo")


def states_at(project: Project, position: int) -> dict[str, str]:
    """States of the steps after an event, by key."""
    board = read_past(project.pk, position)
    return {one.step_key: one.status for one in board.tasks.values() if one.parent_id}


def position_of(kind: str, task: Task) -> int:
    """Where the first event of a kind about a task is sealed."""
    seals = AuditSeal.objects.filter(event__kind=kind, event__task=task).order_by("position")
    return seals.values_list("position", flat=True)[0]


@pytest.mark.parametrize("text", ["打开日志", "重构支付模块的状态机并迁移线上订单", "你好"])
def test_message_that_waits_for_its_project_is_counted_in_the_past_too(
    text: str, project: Project
) -> None:
    pause_project(project_id=project.pk, actor=SIR)
    submit_message(project_id=project.pk, text=text, actor=SIR)
    assert read_traffic(project.pk).messages == 1
    seal_events()
    assert_rebuilt_is_present(project)
    resume_project(project_id=project.pk, actor=SIR)
    drive(project)
    seal_events()
    assert_rebuilt_is_present(project)


def test_each_moment_shows_what_was_true_then(project: Project) -> None:
    root = submit_plan(project, step("a"), step("b", after=["a"]), step("c", phase=2))
    drive(project)
    assert_rebuilt_is_present(project)
    a, c = child(root, "a"), child(root, "c")
    assert states_at(project, position_of("task.done", a) - 1)["a"] == "review"
    assert states_at(project, position_of("task.done", a))["a"] == "done"
    at_c = states_at(project, position_of("task.working", c))
    assert at_c == {"a": "done", "b": "done", "c": "working"}
    first = read_past(project.pk, 1)
    assert first.tasks == {}
    board = read_past(project.pk, position_of("task.working", child(root, "b")))
    graph = past_graph(board, project, root.pk)
    assert [(one.source, one.target, one.is_met) for one in graph.edges] == [("a", "b", True)]
    assert graph.root.open_phase == 1


def test_question_waits_from_its_event_to_its_verdict(project: Project) -> None:
    root = submit_plan(project, step("a", run=["false"], on_failure={"severity": "medium"}))
    drive(project)
    seal_events()
    asked = newest_position()
    decide(open_decision_of(project), "accept_as_is", reason="known")
    drive(project)
    assert_rebuilt_is_present(project)
    then = past_graph(read_past(project.pk, asked), project, root.pk)
    assert then.steps[0].waits_for_sir
    now = past_graph(read_past(project.pk, newest_position()), project, root.pk)
    assert not now.steps[0].waits_for_sir


def test_replanned_imported_cancelled_and_suspended_work_is_rebuilt(project: Project) -> None:
    agent = new_agent(project=project)
    root = submit_plan(project, agent_step("a"), agent_step("b", after=["a"]))
    drive(project)
    execute(child(root, "a"), agent)
    drive(project)
    claim(child(root, "b"), agent)
    set_status(child(root, "b"), agent, "working")
    set_status(child(root, "b"), agent, "failed", detail="no")
    drive(project)
    assert_rebuilt_is_present(project)
    document = {
        "one": {"title": "第一个", "status": "COMPLETED"},
        "two": {"title": "second", "status": "PENDING", "depends_on": ["one"]},
        "three": {"title": "third", "status": "CANCELLED"},
    }
    import_master_list(project_id=project.pk, document=document, actor=SIR)
    create_task(project_id=project.pk, new=NewTask(text="重构支付模块，先定义后迁移"), actor=SIR)
    create_task(project_id=project.pk, new=NewTask(text="打开日志"), actor=SIR)
    drive(project)
    assert_rebuilt_is_present(project)
    cancel_task(task_id=root.pk, actor=SIR, reason="enough")
    pause_project(project_id=project.pk, actor=SIR)
    assert_rebuilt_is_present(project)


def test_span_has_the_projects_own_events_as_neighbours(project: Project) -> None:
    assert span_of(project, None) is None
    submit_plan(project, step("a"))
    other = new_project("other")
    submit_plan(other, step("x"))
    submit_plan(project, step("b"))
    seal_events()
    mine = list(
        AuditSeal.objects.filter(event__project=project)
        .order_by("position")
        .values_list("position", flat=True)
    )
    theirs = AuditSeal.objects.filter(event__project=other).order_by("position")[0].position
    found = span_of(project, theirs)
    assert found is not None
    assert (found.first, found.last) == (mine[0], mine[-1])
    before = max(one for one in mine if one < theirs)
    assert (found.at, found.later) == (before, min(one for one in mine if one > theirs))
    assert span_of(project, 10**9).at == mine[-1]  # type: ignore[union-attr]
    assert span_of(project, -5).earlier is None  # type: ignore[union-attr]


def test_fold_is_pure_and_can_be_continued(project: Project) -> None:
    submit_plan(project, step("a"), step("b", after=["a"]))
    drive(project)
    seal_events()
    from_start = read_past(project.pk, newest_position())
    assert replay([], from_start) is from_start
    assert replay([]) == PastBoard()


def test_rebuilding_reads_nothing_but_the_trail(
    project: Project, django_assert_num_queries: object
) -> None:
    root = submit_plan(project, *[step(f"s{n}") for n in range(12)])
    drive(project)
    seal_events()
    position = newest_position()
    with django_assert_num_queries(1):  # type: ignore[operator]
        board = read_past(project.pk, position)
        past_graph(board, project, root.pk)


def played(project: Project) -> int:
    """Let a few dozen events happen. Return the newest position."""
    submit_plan(project, step("a"), step("b", after=["a"]), step("c", phase=2))
    drive(project)
    seal_events()
    return newest_position()


def test_a_board_from_a_checkpoint_is_the_board_from_the_start(project: Project) -> None:
    last = played(project)
    held = Checkpoints()
    for position in [last, *range(1, last + 1)]:
        warm = read_past(project.pk, position, held=held, every=7)
        assert warm == read_past(project.pk, position, held=Checkpoints())


def test_the_next_request_folds_only_what_came_after_a_checkpoint(project: Project) -> None:
    last = played(project)
    held = Checkpoints()
    board = read_past(project.pk, last, held=held, every=10)
    with CaptureQueriesContext(connection) as seen:
        assert read_past(project.pk, last, held=held, every=10) == board
    assert len(seen) == 1
    assert f'"position" >= {board.position}' in seen[0]["sql"]


def test_a_checkpoint_of_another_history_is_not_used(project: Project) -> None:
    last = played(project)
    held = Checkpoints()
    held.keep(project.pk, "another", PastBoard(position=last))
    assert read_past(project.pk, last, held=held).tasks
    found = held.nearest(project.pk, last)
    assert found is not None
    assert found[0].tasks


def test_checkpoints_keep_within_their_room(project: Project) -> None:
    last = played(project)
    held = Checkpoints(max_bytes=len(pickle.dumps(PastBoard(), pickle.HIGHEST_PROTOCOL)) * 2)
    read_past(project.pk, last, held=held, every=5)
    assert held.nearest(project.pk, last) is None
    held.keep(project.pk, "digest", PastBoard(position=1))
    assert held.nearest(project.pk, last) == (PastBoard(position=1), "digest")
