"""A hint of complexity: it raises what the score of a delegated task says, and never lowers it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import HandshakeRequired, Invalid
from orchestration.models import Agent, Mail, Project, Task
from orchestration.rules.scoring import score
from orchestration.services.readiness import apply_score
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import Complexity
from tests.factories import claim, fresh, new_agent, new_project, post, set_status
from tests.services.mesh_rooms import handshake_of, lease_of, mail, new_task

pytestmark = pytest.mark.django_db
SLOW = "分析 user-service 的性能瓶颈并给出优化建议"
UNDERSTOOD = {
    "scope": "user-service 的 API 延迟问题",
    "approach": "查看监控 → 定位慢接口 → 分析 trace → 给出优化建议",
    "output_format": "根因分析 + 优化建议列表（按优先级排序）",
    "assumptions": ["重点关注 P99 延迟，不是吞吐量"],
    "questions": ["需要关注特定时间段吗？还是看整体趋势？"],
}


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def alice(project: Project) -> Agent:
    """An agent at work on a low task."""
    task, agent = new_task(project, "low"), new_agent("alice", project=project)
    claim(task, agent)
    set_status(task, agent, "working")
    return agent


def delegated(
    project: Project, alice: Agent, content: str = SLOW, **rest: Any
) -> tuple[Mail, Task]:
    """What a task_request without a task, as the source writes it, made."""
    sent = post(mail("task_request", content, to="bob", **rest), alice, project=project)
    assert sent.task is not None
    return sent, fresh(sent.task)


def test_the_four_mails_of_the_source_follow_from_a_hint(project: Project, alice: Agent) -> None:
    bob = new_agent("bob", project=project)
    request, task = delegated(project, alice, complexity_hint="medium")
    assert (request.complexity, task.complexity) == ("medium", "medium")
    assert request.conversation.mode == "delegation"
    assert task.parent == Task.objects.get(assignee=alice)
    claim(task, bob)
    with pytest.raises(HandshakeRequired):
        set_status(task, bob, "working")
    intent = post(mail("intent_confirmation", "", understanding=UNDERSTOOD), bob, task=task)
    assert [one.name for one in intent.recipients.all()] == ["agent:alice"]
    corrections = ["也要看吞吐量，最近有用户反馈 QPS 上不去"]
    verdict = {"status": "confirmed_with_correction", "corrections": corrections}
    post(mail("intent_ack", "", **verdict), alice, answered=intent)
    assert handshake_of(task).answered_by == "agent:alice"
    assert lease_of(task).corrections == corrections
    post(mail("execution_start", "收到，开始分析。"), bob, task=task)
    assert fresh(task).status == "working"


def test_a_task_request_that_names_no_mode_does_nothing_twice(
    project: Project, alice: Agent
) -> None:
    new_agent("bob", project=project)
    asked = mail("task_request", SLOW, to="bob", complexity_hint="high")
    assert post(asked, alice, project=project) == post(asked, alice, project=project)
    assert Task.objects.filter(parent__isnull=False).count() == 1


@pytest.mark.parametrize(
    ("hint", "wanted"), [("low", "low"), ("medium", "medium"), ("high", "high"), (None, "low")]
)
def test_a_hint_raises_what_the_score_says(
    project: Project, alice: Agent, hint: str | None, wanted: str
) -> None:
    new_agent("bob", project=project)
    _, task = delegated(project, alice, "打开说明文件", complexity_hint=hint)
    assert task.complexity == wanted


def test_a_hint_of_the_metadata_counts_as_well(project: Project, alice: Agent) -> None:
    new_agent("bob", project=project)
    _, task = delegated(project, alice, "打开说明文件", metadata={"complexity": "high"})
    assert task.complexity == "high"


def test_a_hint_never_lowers_a_task(project: Project, alice: Agent) -> None:
    new_agent("bob", project=project)
    text = "Design and implement the migration of the production database, then test and deploy it"
    _, plain = delegated(project, alice, text)
    _, hinted = delegated(project, alice, f"{text} now", complexity_hint="low")
    assert plain.complexity == hinted.complexity != Complexity.LOW


def test_a_later_score_keeps_to_the_hint(project: Project, alice: Agent) -> None:
    new_agent("bob", project=project)
    _, task = delegated(project, alice, "打开说明文件", complexity_hint="high")
    with unit_of_work(SYSTEM) as work:
        apply_score(work, task, score("打开说明文件", project.policy, depth=1), backend="rules")
    assert fresh(task).complexity == "high"


def test_who_works_on_nothing_has_to_name_the_task(project: Project) -> None:
    idle = new_agent("idle", project=project)
    new_agent("bob", project=project)
    with pytest.raises(Invalid) as refused:
        post(mail("task_request", SLOW, to="bob"), idle, project=project)
    assert refused.value.errors[0]["path"] == "task"
