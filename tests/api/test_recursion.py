"""The source's e-commerce example, down to depth 3 and no deeper: every child judged on its own.

Source 000 ("递归嵌套"): an architect, a front end and a back end below the shop, three modules
below the back end, the order system taken as a light plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from orchestration.models import Assignment, Blueprint, Project, Task
from orchestration.services.spawning import NewChild, spawn_within
from orchestration.services.work import Actor, unit_of_work
from tests.api.callers import Caller, agent_client, events, facts, problem
from tests.factories import confirm_intent, decide, drive, open_decision_of

SHOP = "从零搭建一个带用户认证的电商系统"
BACK_END = "实现用户认证 + 商品管理 + 订单系统"
ORDERS = "实现订单 CRUD + 支付对接 + 库存扣减"
DEEP = "设计支付模块的架构：前端、后端、数据库和部署，先调研，再设计，然后评审，最后上线；涉及安全"
PLANS: Mapping[str, list[dict[str, Any]]] = {
    SHOP: [
        {"id": "1", "action": "需求分析", "phase": 1, "delegate": False},
        {"id": "2", "action": "架构设计", "phase": 2},
        {"id": "3a", "action": "前端开发", "phase": 3},
        {"id": "3b", "action": BACK_END, "phase": 3},
        {"id": "4", "action": "集成测试", "phase": 4, "delegate": False},
    ],
    BACK_END: [
        {"id": "1", "action": "用户认证模块"},
        {"id": "2", "action": "商品管理模块"},
        {"id": "3", "action": ORDERS},
    ],
}
TASKS = "/api/projects/demo/tasks"
HOURS = {0: 8.0, 1: 2.0, 2: 1.0, 3: 0.5}


class Team:
    """Agents that plan what they are asked to plan and do what they may claim, over REST."""

    def __init__(self, project: Project) -> None:
        self.planner = agent_client(project, name="planner")
        self.worker = agent_client(project, name="worker")
        self.plans = dict(PLANS)
        self.prompts: dict[str, str] = {}

    def plan(self) -> str:
        """Hand in the plan of the oldest task that waits for one. Return the task's path."""
        held = self.planner.send("/api/assignments/claim", {"seats": ["planner"]}).json()
        task = self.planner.read(f"{TASKS}/{held['task']}")
        self.note_prompt(self.planner, held, task)
        plan = {"summary": task["title"], "steps": self.plans[task["title"]]}
        body = {"lease_token": held["lease_token"], **plan}
        answer = self.planner.send(f"/api/assignments/{held['id']}/result", body)
        assert answer.status_code == 200, answer.content
        drive()
        return f"{TASKS}/{task['id']}"

    def take(self, path: str) -> Any:
        """Claim a task and start it, after the handshake where there is one."""
        held = self.worker.send(f"{path}/claim").json()
        task = Task.objects.get(pk=path.rpartition("/")[2])
        self.note_prompt(self.worker, held, self.worker.read(path))
        assert self.worker.agent is not None
        if task.complexity != "low":
            confirm_intent(task, self.worker.agent, scope=task.scope or ("as asked",))
        body = {"status": "working", "light_plan": ["look", "do"]}
        assert self.worker.send(f"{path}/status", body).status_code == 200
        return held

    def do(self, path: str) -> Any:
        """Do a task from claim to review."""
        if self.worker.read(path)["status"] == "pending":
            self.take(path)
        note = {"title": "note", "content": "the work", "type": "document"}
        self.worker.send(f"{path}/outputs", note)
        self.worker.send(f"{path}/comments", {"comment_type": "handoff", "body": "Nothing open."})
        answer = self.worker.send(f"{path}/status", {"status": "review"})
        assert answer.status_code == 200, answer.content
        drive()
        return answer.json()

    def note_prompt(self, agent: Caller, held: Any, task: Any) -> None:
        """Read the prompt that goes with a lease."""
        self.prompts[task["title"]] = agent.get(held["prompt_url"]).content.decode()


@pytest.fixture
def team(project: Project) -> Team:
    """A planner and a worker."""
    return Team(project)


def step_of(caller: Caller, path: str, key: str) -> Any:
    """Read the live step of a plan by its key."""
    rows = caller.read(f"{path}?expand=all")["children"]
    return next(one for one in rows if one["step_key"] == key)


def hours_of(task_id: str) -> float:
    """How long one assignment of a task may take. Units: hours."""
    row = Assignment.objects.filter(task_id=task_id, leased_at__isnull=False).latest("pk")
    assert isinstance(row.deadline, datetime)
    assert isinstance(row.leased_at, datetime)
    return (row.deadline - row.leased_at).total_seconds() / 3600


def shop_at_depth_2(team: Team, sir: Caller) -> tuple[str, str, str]:
    """Bring the shop to where its order system may start. Return shop, back end, orders."""
    made = sir.send("/api/projects/demo/messages", {"text": SHOP}).json()["task"]
    shop = team.plan()
    assert shop.endswith(made["id"])
    for key in ("1", "2", "3a"):
        team.do(f"{TASKS}/{step_of(sir, shop, key)['id']}")
    back_end = team.plan()
    for key in ("1", "2"):
        team.do(f"{TASKS}/{step_of(sir, back_end, key)['id']}")
    return shop, back_end, f"{TASKS}/{step_of(sir, back_end, '3')['id']}"


def test_shop_is_built_down_to_depth_3_and_refused_below(
    project: Project, team: Team, sir: Caller
) -> None:
    shop, back_end, orders = shop_at_depth_2(team, sir)
    team.take(orders)
    spawned = team.worker.send(f"{orders}/spawn", {"description": DEEP, "title": "payment"})
    assert spawned.status_code == 201, spawned.content
    deep = f"{TASKS}/{spawned.json()['id']}"
    expected = {
        shop: (0, "three_step"), back_end: (1, "three_step"),
        orders: (2, "light_plan"), deep: (3, "light_plan"),
    }  # fmt: skip
    team.take(deep)
    for path, (depth, route) in expected.items():
        task = sir.read(f"{path}?expand=all")
        assert (task["depth"], task["route"]) == (depth, route)
        # Each was judged by itself, on its own words.
        assert [one["stage"] for one in task["assessments"]] == ["S0", "S1"]
        assert task["assessments"][1]["total"] == task["score"]
        assert f"[COMPLEXITY_DEPTH={depth}]" in team.prompts[task["title"]]
        assert hours_of(task["id"]) == HOURS[depth]
    assert sir.read(deep)["score"] > 15
    refused = problem(
        team.worker.send(f"{deep}/spawn", {"description": "打开支付页面"}), 403, "spawn_depth"
    )
    assert refused["depth"] == 3
    assert len(events("permission.refused")) == 1
    # High complexity, and nobody independent is there to check it: Sir has the last look.
    assert team.do(deep)["status"] == "waiting_human"
    decide(open_decision_of(project, "final_review"), "approve")
    assert sir.read(deep)["status"] == "done"
    assert team.do(orders)["status"] == "done"
    assert sir.read(back_end)["status"] == "done"
    assert team.do(f"{TASKS}/{step_of(sir, shop, '4')['id']}")["status"] == "done"
    assert sir.read(shop)["status"] == "done"


def test_scores_of_the_sources_own_sentences(project: Project, team: Team, sir: Caller) -> None:
    shop, back_end, orders = shop_at_depth_2(team, sir)
    assert sir.read(shop)["score"] == 22
    assert sir.read(back_end)["score"] > 15
    assert 9 <= sir.read(orders)["score"] <= 15
    phases = {one["step_key"]: one["phase"] for one in sir.read(f"{shop}?expand=all")["children"]}
    assert phases == {"1": 1, "2": 2, "3a": 3, "3b": 3, "4": 4}


def test_cancelling_the_shop_cancels_its_whole_tree(
    project: Project, team: Team, sir: Caller
) -> None:
    shop, _, orders = shop_at_depth_2(team, sir)
    team.take(orders)
    deep = f"{TASKS}/{team.worker.send(f'{orders}/spawn', {'description': DEEP}).json()['id']}"
    team.take(deep)
    done = set(Task.objects.filter(status="done").values_list("pk", flat=True))
    assert sir.send(f"{shop}/cancel", {"reason": "not any more"}).json()["status"] == "cancelled"
    rows = Task.objects.filter(project=project)
    assert set(rows.exclude(pk__in=done).values_list("status", flat=True)) == {"cancelled"}
    assert set(rows.filter(pk__in=done).values_list("status", flat=True)) == {"done"}
    assert not Assignment.objects.filter(status__in=["queued", "leased"]).exists()
    for path in (orders, deep):
        problem(team.worker.send(f"{path}/heartbeat"), 409, "lease_lost")


def test_plan_at_depth_3_is_never_made(project: Project, team: Team, sir: Caller) -> None:
    """Complex steps below complex steps: the one at depth 3 is never planned, it goes light."""
    texts = [f"{SHOP}第{n}期" for n in range(4)]
    for above, below in pairwise(texts):
        team.plans[above] = [{"id": "1", "action": below}, {"id": "2", "action": "打开结果"}]
    sir.send("/api/projects/demo/messages", {"text": texts[0]})
    paths = [team.plan() for _ in range(3)]
    deepest = sir.read(f"{TASKS}/{step_of(sir, paths[-1], '1')['id']}")
    assert (deepest["depth"], deepest["route"], deepest["status"]) == (3, "light_plan", "pending")
    assert deepest["score"] > 15
    none = team.planner.send("/api/assignments/claim", {"seats": ["planner"]})
    assert none.status_code == 204
    assert Blueprint.objects.count() == 3


def test_child_101_is_refused_by_the_default_policy(agent: Caller, held: str) -> None:
    task = Task.objects.get(pk=held.rpartition("/")[2])
    assert agent.agent is not None
    with unit_of_work(Actor(f"agent:{agent.agent.name}")) as work:
        for number in range(1, 101):
            spawn_within(work, task.pk, NewChild(text=f"打开第 {number} 页"), agent.agent)
    problem(agent.send(f"{held}/spawn", {"description": "打开第 101 页"}), 403, "spawn_width")
    assert task.children.count() == 100
    (refusal,) = events("permission.refused")
    assert facts(refusal)["code"] == "spawn_width"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (ORDERS, "description"),
        (f"  {BACK_END.replace(' + ', '，')} ！", "description"),
        (SHOP.upper(), "description"),
    ],
)
def test_child_is_smaller_than_every_ancestor(
    project: Project, team: Team, sir: Caller, text: str, path: str
) -> None:
    _, _, orders = shop_at_depth_2(team, sir)
    team.take(orders)
    body = {"description": text}
    found = problem(team.worker.send(f"{orders}/spawn", body), 422, "not_smaller")
    assert [one["path"] for one in found["errors"]] == [path]
