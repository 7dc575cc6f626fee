"""What we found of claims in an agent's words: marks, findings, and counts that shrink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from orchestration.contracts.results import OutputInput, ToolCallInput
from orchestration.mark_words import CODES, mark_lines
from orchestration.models import Agent, Defect, Output, Project, Task, ToolCall, Verification
from orchestration.rules.tool_record import ENGLISH
from orchestration.services.assignments import lease
from orchestration.services.cancelling import cancel_tree
from orchestration.services.claim_findings import keys_of
from orchestration.services.lookups import lineage_root, lock_for_result, lock_task
from orchestration.services.outputs import add_output, read_output
from orchestration.services.results import record_agent_result
from orchestration.services.tool_calls import store_calls
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import TaskStatus
from tests.api.callers import agent_client, session_client
from tests.factories import (
    actor_of,
    agent_step,
    child,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    submit_plan,
)

pytestmark = pytest.mark.django_db

TEST = "import unittest\nclass Sums(unittest.TestCase):\n"
CASE = "    def test_{n}(self): self.assertEqual({n} + 1, {value})\n"


@pytest.fixture
def project() -> Project:
    return new_project()


def write(project: Project, name: str, text: str) -> None:
    (Path(project.workspace) / name).write_text(text)


def write_tests(project: Project, good: int, bad: int = 0) -> None:
    """Write a file of so many tests that pass, and so many that do not."""
    cases = [CASE.format(n=n, value=n + 1) for n in range(good)]
    cases += [CASE.format(n=n, value=0) for n in range(good, good + bad)]
    write(project, "test_sums.py", TEST + "".join(cases))


def call(command: str, *, code: int = 0, tail: str = "", source: str = "harness") -> dict[str, Any]:
    return {
        "tool": "Bash", "command": command, "exit_code": code, "output_tail": tail,
        "source": source,
    }  # fmt: skip


def answer(
    task: Task,
    seat: str,
    agent: Agent,
    document: dict[str, Any],
    *,
    calls: Sequence[Mapping[str, Any]] = (),
    outputs: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Answer a seat as an agent that recorded calls and handed in outputs before."""
    with unit_of_work(actor_of(agent)) as work:
        queued = task.assignments.select_related("task__project").get(seat=seat, status="queued")
        queued = lock_for_result(queued)
        lease(work, queued, queued.project.policy, worker=agent.name, agent=agent)
        store_calls(work, queued, [ToolCallInput.model_validate(one) for one in calls])
        for one in outputs:
            output = OutputInput.model_validate(one)
            data, _ = read_output(queued.task, output)
            add_output(work, queued.task, output, assignment=queued, data=data)
        work.flush()
        record_agent_result(work, queued, queued.task.parent, document)


def hand_in(
    project: Project, words: str, *, calls: list[dict[str, Any]] | None = None, **output: Any
) -> Task:
    """Let an agent record its calls and hand in a step with these words as its summary."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    step = child(root, "1")
    document = {
        "status": "review",
        "output": {
            "title": "work",
            "type": "code",
            "summary": words,
            **(output or {"content": "x"}),
        },
        "comment": "done",
    }
    answer(step, "executor", new_agent(project=project), document, calls=calls or [])
    drive(project)
    return child(root, "1")


def fix(project: Project, task: Task, words: str) -> Task:
    """Let another agent fix what was found."""
    document = {
        "status": "review",
        "output": {"title": "work", "content": "x", "summary": words},
        "comment": "mended",
        "change_note": "mended",
    }
    answer(task, "fixer", new_agent(project=project), document)
    drive(project)
    return fresh(task)


def lines(task: Task, language: str = "en") -> list[str]:
    with translation.override(language):
        newest = task.outputs.latest("pk")
        return mark_lines(newest.marks)


# --- Marks ----------------------------------------------------------------------------------------


def test_what_we_checked_of_spoken_claims_is_marked(project: Project) -> None:
    write_tests(project, 2)
    task = hand_in(project, "test_sums.py 已创建，编译通过，2 个测试全部通过")
    assert lines(task, "zh-hans") == [
        "[独立验证 ✓] 文件存在: test_sums.py、编译通过、测试: 2 个通过，0 个失败"
    ]
    grades = {one["grade"] for one in task.outputs.get().marks}
    assert grades == {"rerun"}


def test_marks_stand_in_the_api_and_on_the_task_page(project: Project) -> None:
    write_tests(project, 1, bad=1)
    task = hand_in(project, "created gone.py, 2 passed")
    found = agent_client(project).read(f"/api/projects/{project.slug}/tasks/{task.pk}?expand=all")
    whole = [*found["marks"], *(one for output in found["outputs"] for one in output["marks"])]
    shown = {one["code"]: one["text"] for one in whole}
    assert shown["claim_contradicted"] == "contradicted: created gone.py"
    assert shown["count_contradicted"] == "contradicted: 2 passed (1 passed, 1 failed)"
    page = session_client().get(f"/projects/{project.slug}/tasks/{task.pk}/").content.decode()
    assert "[independently verified ✗]" in page
    assert "contradicted: 2 passed (1 passed, 1 failed)" in page


def test_one_run_is_one_mark_however_often_it_is_claimed(project: Project) -> None:
    write_tests(project, 2)
    words = "All tests pass. 2 passed. The test suite is green. it builds. The code compiles."
    task = hand_in(project, words)
    assert lines(task) == ["[independently verified ✓] tests: 2 passed, 0 failed, builds"]


def test_file_that_is_handed_in_and_claimed_is_marked_once(project: Project) -> None:
    write(project, "app.py", "x = 1\n")
    task = hand_in(project, "created app.py", path="app.py")
    assert lines(task) == ["[independently verified ✓] file exists: app.py"]


def test_planned_command_that_proves_a_claim_is_marked_once() -> None:
    project = new_project(policy={"commands": {"allow": [["make"]]}})
    write(project, "Makefile", "test:\n\t@echo 3 passed in 0.1s\n")
    root = submit_plan(project, agent_step("1", verify=["make test"]))
    drive(project)
    output = {"title": "work", "content": "x", "summary": "3 passed"}
    document = {"status": "review", "output": output, "comment": "done"}
    answer(child(root, "1"), "executor", new_agent(project=project), document)
    drive(project)
    assert lines(child(root, "1")) == ["[independently verified ✓] tests: 3 passed, 0 failed"]


def test_claim_that_could_not_be_checked_says_so_and_why() -> None:
    kiln = {"name": "kiln", "files": ["kiln.toml"], "build": "kiln-absent build"}
    project = new_project(policy={"checks": {"toolchains": [kiln]}})
    write(project, "kiln.toml", "x")
    task = hand_in(project, "编译通过")
    [mark] = task.outputs.get().marks
    assert (mark["kind"], mark["code"]) == ("not_verified", "unchecked_tool_missing")
    assert lines(task, "zh-hans") == ["[未验证] 未核对: 编译通过（本机没有安装 kiln-absent）"]


def test_marks_of_the_record_stand_beside_ours(project: Project) -> None:
    write_tests(project, 2)
    ran = call("python3 -m unittest -q", tail="Ran 2 tests in 0.1s\n\nOK")
    task = hand_in(project, "all tests pass", calls=[ran])
    assert lines(task) == [
        "[independently verified ✓] tests: 2 passed, 0 failed",
        "[agent verified] tests pass (exit 0)",
    ]


def test_claim_of_a_file_marks_only_the_output_that_names_it(project: Project) -> None:
    write(project, "a.py", "x = 1\n")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    step, agent = child(root, "1"), new_agent(project=project)
    outputs = [
        {"title": "first", "content": "x", "summary": "created a.py"},
        {"title": "second", "content": "y", "summary": "nothing to say"},
    ]
    answer(
        step, "executor", agent, {"status": "review", "comment": "done", "output": outputs[1]},
        outputs=outputs[:1],
    )  # fmt: skip
    drive(project)
    codes = {
        one.title: [mark["code"] for mark in one.marks] for one in Output.objects.filter(task=step)
    }
    assert codes == {"first": ["file_exists"], "second": ["reasoning_only"]}


# --- One claim, one defect ------------------------------------------------------------------------


FAILED = call("python3 -m unittest -q", code=1, tail="Ran 2 tests in 0.1s\n\nFAILED (failures=1)")


def test_claim_that_the_record_denies_is_one_defect_that_names_the_call(project: Project) -> None:
    write_tests(project, 1, bad=1)
    task = hand_in(project, "all tests pass", calls=[FAILED])
    defect = task.defects.get()
    assert (defect.severity, defect.evidence["grade"]) == ("high", "observed")
    assert defect.evidence["exit_code"] == 1
    assert defect.evidence["tool_call"] == str(ToolCall.objects.get(assignment__task=task).pk)


def test_two_claims_that_are_not_so_stay_two_defects(project: Project) -> None:
    write_tests(project, 1, bad=1)
    write(project, "broken.py", "def f(:\n")
    task = hand_in(project, "it builds, all tests pass")
    found = {one.source_key: len(one.evidence.get("beside", ())) for one in task.defects.all()}
    assert found == {"claim:build:": 0, "claim:test:": 0}


def test_merged_defect_is_verified_when_our_check_proves_the_claim(project: Project) -> None:
    write_tests(project, 1, bad=1)
    task = hand_in(project, "all tests pass", calls=[FAILED])
    write_tests(project, 2)
    task = fix(project, task, "all tests pass")
    assert [one.status for one in task.defects.all()] == ["verified"]
    assert task.status == TaskStatus.DONE


def test_merged_defect_that_still_fails_is_reopened_and_not_doubled(project: Project) -> None:
    write_tests(project, 1, bad=1)
    task = hand_in(project, "all tests pass", calls=[FAILED])
    task = fix(project, task, "all tests pass")
    defect = task.defects.get()
    assert (defect.fix_round, defect.status) == (2, "fixing")


# --- Fewer tests than before ----------------------------------------------------------------------


def run_before(project: Project, good: int) -> Task:
    write_tests(project, good)
    task = hand_in(project, "all tests pass")
    assert task.status == TaskStatus.DONE
    return task


def test_fewer_tests_than_the_previous_run_are_a_finding(project: Project) -> None:
    run_before(project, 4)
    write_tests(project, 3)
    task = hand_in(project, "all tests pass")
    defect = task.defects.get()
    assert (defect.severity, defect.status) == ("medium", "awaiting_sir")
    assert (defect.evidence["total"], defect.evidence["earlier"]) == (3, 4)
    assert task.status == TaskStatus.REVIEW
    assert "3 tests ran, 4 in an earlier run of the same command" in " ".join(lines(task))
    row = task.verifications.get(name__startswith="fewer tests")
    assert (row.outcome, row.grade) == ("failed", "rerun")


def test_as_many_tests_or_more_are_no_finding(project: Project) -> None:
    for count in (2, 2, 3):
        run_before(project, count)
    assert not Defect.objects.exists()


def test_without_an_earlier_run_nothing_is_guessed(project: Project) -> None:
    run_before(project, 1)
    assert not Verification.objects.filter(name__startswith="fewer").exists()


def test_another_command_is_no_earlier_run() -> None:
    rules = [
        {"name": "all", "files": ["all.txt"], "test": "sh -c 'echo 9 passed in 1s'"},
        {"name": "one", "files": ["one.txt"], "test": "sh -c 'echo 1 passed in 1s'"},
    ]
    project = new_project(policy={"checks": {"toolchains": rules}})
    write(project, "all.txt", "x")
    assert hand_in(project, "9 passed").status == TaskStatus.DONE
    (Path(project.workspace) / "all.txt").unlink()
    write(project, "one.txt", "x")
    assert hand_in(project, "1 passed").status == TaskStatus.DONE


def test_run_of_refused_work_is_no_earlier_run(project: Project) -> None:
    write_tests(project, 4, bad=1)
    refused = hand_in(project, "all tests pass")
    assert refused.status == TaskStatus.REVIEW
    with unit_of_work(SYSTEM) as work:
        cancel_tree(work, lock_task(lineage_root(refused).pk), why="not wanted")
    write_tests(project, 2)
    assert hand_in(project, "all tests pass").status == TaskStatus.DONE


def test_fix_that_takes_failing_tests_away_is_a_finding(project: Project) -> None:
    write_tests(project, 2, bad=2)
    task = hand_in(project, "all tests pass")
    write_tests(project, 2)
    task = fix(project, task, "all tests pass")
    found = {one.source_key.partition(":")[0]: one.status for one in task.defects.all()}
    assert found == {"claim": "verified", "fewer": "awaiting_sir"}
    assert task.status == TaskStatus.REVIEW


def test_sir_may_accept_fewer_tests_and_the_work_goes_on(project: Project) -> None:
    run_before(project, 4)
    write_tests(project, 3)
    task = hand_in(project, "all tests pass")
    item = open_decision_of(project, "medium_defect")
    decide(item, "accept_as_is", reason="one test was of a removed part")
    drive(project)
    assert fresh(task).status == TaskStatus.DONE


def test_fewer_in_the_record_and_in_our_run_are_one_finding(project: Project) -> None:
    run_before(project, 4)
    write_tests(project, 3)
    calls = [
        call("python3 -m unittest -q", tail="Ran 4 tests in 0.1s\n\nOK"),
        call("python3 -m unittest -q", tail="Ran 3 tests in 0.1s\n\nOK"),
    ]
    task = hand_in(project, "all tests pass", calls=calls)
    defect = task.defects.get()
    assert (defect.severity, defect.evidence["outcome"]) == ("medium", "fewer_tests")
    assert [one["grade"] for one in defect.evidence["beside"]] == ["observed"]
    assert len(keys_of(defect.source_key, defect.evidence)) > 1
    page = session_client().get(f"/inbox/{open_decision_of(project).pk}/").content.decode()
    assert "from the record of its agent’s tool calls" in page


def test_planned_test_command_is_held_against_its_earlier_run() -> None:
    project = new_project(policy={"commands": {"allow": [["sh"]]}})
    for count, expected in ((5, "done"), (4, "review")):
        write(project, "run.sh", f"echo {count} passed in 1s\n")
        root = submit_plan(project, agent_step("1", verify=["sh run.sh"]))
        drive(project)
        output = {"title": "work", "content": "x", "summary": "see for yourself"}
        document = {"status": "review", "output": output, "comment": "done"}
        answer(child(root, "1"), "executor", new_agent(project=project), document)
        drive(project)
        assert child(root, "1").status == expected


def test_every_code_of_a_mark_has_words_in_the_readers_language() -> None:
    assert set(CODES) == set(ENGLISH)
    with translation.override("zh-hans"):
        same = [code for code, text in ENGLISH.items() if str(CODES[code]) == text]
    assert same == []
