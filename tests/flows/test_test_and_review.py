"""`/test` and `/review-security` with scripted agents and Sir."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.errors import Conflict, Invalid
from orchestration.models import Defect, Project, Task
from orchestration.services.work import Actor
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import child, decide, drive, fresh, open_decision_of
from tests.flows.scripts import SNIPPET, Crew

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
RAN = {"runnable": True, "commands": ["python app.py"], "rounds": 1}
GUIDE = """# Test guide

## Runnability commands

- `python app.py`

## Case management

One file a module.

## Test commands

```
python -m pytest -q
```
"""
RED = {
    "phase": "RED", "test_files": ["tests/test_calc.py"], "test_points": ["adds"],
    "expected_failures": ["test_add"], "run_command": "python -m pytest -q",
}  # fmt: skip
DONE: dict[str, Any] = {
    "green": {"files": ["calc.py"], "results": {"passed": 3, "failed": 0}},
    "refactor": {"improvements": ["one name"],
                 "coverage": {"lines": 91.5, "branches": 80, "functions": 100}},
    "run_command": "python -m pytest -q", "verdict": "PASS",
}  # fmt: skip
FINDING = {
    "title": "The password is logged", "severity": "medium", "advice": "log no password",
    "evidence": [{"path": "login.py", "line": 3, "snippet": SNIPPET}],
}  # fmt: skip


def begin(project: Project, text: str) -> Task:
    sent = dispatch_text(project_id=project.pk, text=text, actor=SIR)
    drive(project)
    return fresh(sent.task)


def up_to_design(crew: Crew, root: Task) -> Task:
    crew.do(child(root, "run"), ("run", RAN))
    crew.do(child(root, "prepare"), ("TEST_GUIDE.md", GUIDE))
    confirm = child(root, "confirm")
    crew.begin(confirm)
    crew.ask(confirm, "Test addition only?")
    crew.answer()
    crew.give(confirm, "confirmed", "addition only")
    crew.hand_off(confirm)
    return child(root, "test-design")


def test_whole_test_run_from_runnability_to_pass(project: Project, crew: Crew) -> None:
    root = begin(project, "/test the calculator")
    crew.do(up_to_design(crew, root), ("red", RED))
    crew.do(child(root, "test-fix"), ("done", DONE))
    assert fresh(root).status == "done"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"passed": 1}, "TDD_VIOLATION"),
        ({"expected_failures": []}, "TDD_VIOLATION"),
        ({"test_points": [str(one) for one in range(11)]}, "invalid"),
        ({"rounds": 4}, "invalid"),
    ],
)
def test_red_that_is_none_is_refused(
    project: Project, crew: Crew, change: dict[str, Any], code: str
) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    with pytest.raises(Invalid) as caught:
        crew.do(design, ("red", RED | change))
    assert caught.value.code == code
    assert fresh(design).status == "working"


def test_command_outside_the_guide_needs_sir(project: Project, crew: Crew) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.begin(design)
    crew.give(design, "red", json.dumps(RED | {"run_command": "tox"}), "data")
    with pytest.raises(Conflict, match="is no command of"):
        crew.hand_off(design)
    crew.ask(design, "May I run `tox`?")
    decide(open_decision_of(project, "waiting_human"), "approve")
    crew.hand_off(design)
    assert fresh(design).status == "done"


@pytest.mark.parametrize("words", ["No. Never run that.", "1. yes"])
def test_words_confirm_no_command(project: Project, crew: Crew, words: str) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.begin(design)
    crew.give(design, "red", json.dumps(RED | {"run_command": "tox"}), "data")
    crew.ask(design, "May I run `tox`?")
    crew.answer(words)
    with pytest.raises(Conflict, match="Sir did not approve `tox`") as caught:
        crew.hand_off(design)
    assert caught.value.code == "command_unconfirmed"
    assert words in caught.value.detail
    assert fresh(design).status == "working"


def test_newest_word_on_a_command_holds_also_against_the_guide(
    project: Project, crew: Crew
) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.begin(design)
    crew.give(design, "red", json.dumps(RED), "data")
    for verdict in ("approve", "answer"):
        crew.ask(design, f"May I run `{RED['run_command']}`?")
        decide(open_decision_of(project, "waiting_human"), verdict, reason="not on this machine")
    with pytest.raises(Conflict, match="not on this machine"):
        crew.hand_off(design)


def test_card_of_a_question_says_what_lets_its_commands_run(project: Project, crew: Crew) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.begin(design)
    crew.ask(design, "May I run `tox`?")
    asked = open_decision_of(project, "waiting_human")
    says = {one["verdict"]: [part["code"] for part in one["consequences"]]
            for one in asked.options}  # fmt: skip
    assert asked.content["shown_commands"] == ["tox"]
    assert says["approve"] == ["shown_commands_run", "task_resumes"]
    assert says["answer"] == ["agent_gets_answer", "commands_stay_unconfirmed", "task_resumes"]


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("results", {"passed": 2, "failed": 1}, "IMPLEMENTATION_INCOMPLETE"),
        ("coverage", {"lines": 79.9, "branches": 80, "functions": 100}, "COVERAGE_BELOW_THRESHOLD"),
        ("diff", "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1,2 +1 @@\n-def test_a():\n"
                 "-    assert add(1, 2) == 3\n+x = 1\n", "TDD_VIOLATION"),
        ("diff", "--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1,2 @@\n"
                 "+@pytest.mark.skip\n def test_a():\n", "TDD_VIOLATION"),
    ],
)  # fmt: skip
def test_green_that_is_none_is_refused(
    project: Project, crew: Crew, path: str, value: Any, code: str
) -> None:
    root = begin(project, "/test the calculator")
    crew.do(up_to_design(crew, root), ("red", RED))
    section = "refactor" if path == "coverage" else "green"
    bad = DONE | {section: DONE[section] | {path: value}}
    with pytest.raises(Invalid) as caught:
        crew.do(child(root, "test-fix"), ("done", bad))
    assert caught.value.code == code


def test_findings_of_a_security_review_are_graded_defects(project: Project, crew: Crew) -> None:
    root = begin(project, "/review-security the sign-in")
    step = child(root, "security")
    crew.do(step, ("review", {"reviewed": ["login.py"], "findings": [FINDING]}))
    crew.judge_it(verdict="pass")
    (defect,) = Defect.objects.filter(task=step)
    assert (defect.severity, defect.status, defect.title) == (
        "medium", "awaiting_sir", "The password is logged",
    )  # fmt: skip
    assert fresh(root).status == "working"


def test_security_review_without_findings_is_done(project: Project, crew: Crew) -> None:
    root = begin(project, "/review-security the sign-in")
    crew.do(child(root, "security"), ("review", {"reviewed": ["login.py"], "findings": []}))
    crew.judge_it(verdict="pass")
    assert fresh(root).status == "done"
