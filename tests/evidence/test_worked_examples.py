"""The worked examples of source document 003, end to end over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from orchestration.mark_words import mark_lines
from orchestration.models import Project, Task
from tests.api.callers import Caller, session_client
from tests.api.test_assignments_api import claim, here, lease
from tests.factories import (
    agent_step,
    child,
    confirm_intent,
    drive,
    fresh,
    submit_plan,
)

HOOK = "/api/hooks/claude-code"
BUILD = "python -m py_compile hello.py"


def hook(agent: Caller, command: str, *, error: str = "") -> None:
    """Report one finished Bash call, as Claude Code does."""
    name = "PostToolUseFailure" if error else "PostToolUse"
    rest: dict[str, Any] = {"error": error} if error else {"tool_response": {"stdout": "hello"}}
    body = {
        "hook_event_name": name,
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": f"toolu_{command}{error}",
        **rest,
    }
    assert agent.send(HOOK, body).status_code == 200  # fmt: skip


def hand_in(agent: Caller, held: dict[str, Any], comment: str, **output: Any) -> None:
    """Hand in one output with its hand-off."""
    document = {"status": "review", "output": {"title": "work", **output}, "comment": comment}
    answer = agent.send(here(held, "result"), lease(held, **document))
    assert answer.status_code == 200, answer.content


def shown(agent: Caller, task: Task, language: str = "zh-hans") -> list[str]:
    """The lines of marks below the work, in a language."""
    path = f"/api/projects/demo/tasks/{task.pk}?expand=all"
    [output] = agent.read(path)["outputs"]
    with translation.override(language):
        return mark_lines(output["marks"])


def step_of(project: Project, **rest: Any) -> Task:
    root = submit_plan(project, agent_step("1", **rest))
    drive(project)
    return child(root, "1")


def test_independent_mark_stands_beside_the_agents_own(project: Project, bob: Caller) -> None:
    task = step_of(project, expected_artifacts=["hello.py"], verify=[BUILD])
    held = claim(bob, "executor")
    Path(project.workspace, "hello.py").write_text("print('hello')\n")
    hook(bob, BUILD)
    hook(bob, "python hello.py")
    hand_in(bob, held, "hello.py 已创建，编译通过，可以直接运行。", path="hello.py")
    drive(project)
    task = fresh(task)
    assert task.status == "done"
    assert shown(bob, task) == [
        f"[独立验证 ✓] 文件存在: hello.py、编译通过、通过: {BUILD}",
        "[agent 已验证] 编译通过(exit 0)、运行成功(exit 0)",
    ]
    with translation.override("en"):
        assert shown(bob, task, "en")[1] == "[agent verified] builds (exit 0), runs (exit 0)"


def test_failing_command_is_marked_as_what_it_is(project: Project, bob: Caller) -> None:
    task = step_of(project)
    held = claim(bob, "executor")
    hook(bob, "go build ./...", error="Exit code 1\nmain.go:3: undefined")
    hand_in(bob, held, "代码写好了，但编译有个小问题，我来修一下。", content="package main")
    assert shown(bob, fresh(task)) == ["[agent 已验证] 命令失败(exit 1): go build ./..."]


def test_reasoning_alone_is_marked_as_not_verified(project: Project, bob: Caller) -> None:
    task = step_of(project)
    held = claim(bob, "executor")
    said = "建议把查询改成批量接口，预计能降低 60% 的延迟。"
    hand_in(bob, held, said, content=said)
    assert shown(bob, fresh(task)) == ["[未验证] 以上结论基于推理，未执行验证命令"]


def test_marks_read_the_same_on_the_task_page(project: Project, bob: Caller) -> None:
    task = step_of(project)
    held = claim(bob, "executor")
    hand_in(bob, held, "done", content="a guess")
    client: Client = session_client()
    html = client.get(f"/projects/demo/tasks/{task.pk}/").content.decode()
    assert "[not verified]" in html


CLAIMS = [
    {"claim": "the file compiles", "confidence": "verified", "evidence": "py_compile",
     "verify_command": BUILD},
    {"claim": "it is fast", "confidence": "inferred", "reasoning": "it is short"},
]  # fmt: skip


def test_claim_that_its_own_check_contradicts_is_a_high_defect(
    project: Project, bob: Caller
) -> None:
    task = step_of(project)
    Task.objects.filter(pk=task.pk).update(complexity="medium")
    held = claim_confirmed(bob, task)
    Path(project.workspace, "hello.py").write_text("print('hello'\n")
    hand_in(bob, held, "done", path="hello.py", assertions=CLAIMS)
    drive(project)
    task = fresh(task)
    assert task.status == "review"
    defect = task.defects.get()
    assert (defect.severity, defect.evidence["grade"]) == ("high", "rerun")
    output = task.outputs.get()
    assert output.assertions[0]["proof"]["ok"] is False
    assert "independently_failed" in [one["kind"] for one in output.marks]


def claim_confirmed(agent: Caller, task: Task) -> dict[str, Any]:
    """Claim, and have what was understood confirmed by rules."""
    held = claim(agent, "executor")
    assert agent.agent is not None
    confirm_intent(fresh(task), agent.agent)
    return held


def test_proven_claim_raises_proven_trust_and_words_do_not(project: Project, bob: Caller) -> None:
    task = step_of(project)
    Task.objects.filter(pk=task.pk).update(complexity="medium")
    held = claim_confirmed(bob, task)
    Path(project.workspace, "hello.py").write_text("print('hello')\n")
    both = [CLAIMS[0], CLAIMS[1] | {"confidence": "verified", "evidence": "I am sure"}]
    hand_in(bob, held, "done", path="hello.py", assertions=both)
    drive(project)
    [output] = bob.read(f"/api/projects/demo/tasks/{task.pk}?expand=all")["outputs"]
    assert (output["declared_trust"], output["proven_trust"]) == (1.0, 0.5)
    assert output["trust_band"] == "partial"


@pytest.mark.parametrize(
    ("text", "proven"), [("print('hello')\n", 0.5), ("print('hello'\n", 0.0)], ids=["ok", "broken"]
)
def test_planned_check_that_is_a_claims_command_proves_it_at_low_complexity_too(
    project: Project, bob: Caller, text: str, proven: float
) -> None:
    task = step_of(project, verify=[{"cmd": BUILD, "timeout_seconds": 20}])
    assert task.complexity == "low"
    held = claim(bob, "executor")
    Path(project.workspace, "hello.py").write_text(text)
    hand_in(bob, held, "done", path="hello.py", assertions=CLAIMS)
    drive(project)
    [output] = bob.read(f"/api/projects/demo/tasks/{task.pk}?expand=all")["outputs"]
    assert (output["declared_trust"], output["proven_trust"]) == (0.5, proven)
    assert output["assertions"][0]["proof"]["grade"] == "rerun"
    assert [one.source_key for one in fresh(task).defects.all()] == ["verify:0"] * (proven == 0)
