"""`/test` and `/review-security` with scripted agents and Sir."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from orchestration.errors import Conflict, Invalid
from orchestration.models import Artifact, Decision, Defect, Project, Task, Verification
from orchestration.seats.test_commands import confirmed_commands, guide_commands
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.work import Actor
from orchestration.states import Seat
from orchestration.workflows.dispatch import dispatch_text
from tests.factories import actor_of, child, decide, drive, fresh, open_decision_of
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
python3 -m unittest tests.test_calc
```
"""
RED = {
    "phase": "RED", "test_files": ["tests/test_calc.py"], "test_points": ["adds"],
    "expected_failures": ["test_add"], "run_command": "python3 -m unittest tests.test_calc",
}  # fmt: skip
DONE: dict[str, Any] = {
    "green": {"files": ["calc.py"], "results": {"passed": 2, "failed": 0}},
    "refactor": {"improvements": ["one name"],
                 "coverage": {"lines": 91.5, "branches": 80, "functions": 100}},
    "run_command": "python3 -m unittest tests.test_calc", "verdict": "PASS",
}  # fmt: skip
TESTS = """import unittest

from calc import add


class Adds(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_negative(self):
        self.assertEqual(add(1, -2), -1)
"""
CODE = "def add(a, b):\n    return a + b\n"
FINDING = {
    "title": "The password is logged", "severity": "medium", "advice": "log no password",
    "evidence": [{"path": "login.py", "line": 3, "snippet": SNIPPET}],
}  # fmt: skip


def begin(project: Project, text: str) -> Task:
    sent = dispatch_text(project_id=project.pk, text=text, actor=SIR)
    drive(project)
    return fresh(sent.task)


def write(project: Project, path: str, text: str) -> None:
    """Write a file as an agent would."""
    made = Path(project.workspace, path)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(text)


def up_to_design(crew: Crew, root: Task) -> Task:
    crew.do(child(root, "run"), ("run", RAN))
    crew.do(child(root, "prepare"), ("TEST_GUIDE.md", GUIDE))
    confirm = child(root, "confirm")
    crew.begin(confirm)
    crew.ask(confirm, "Test addition only?")
    crew.answer()
    crew.give(confirm, "confirmed", "addition only")
    crew.hand_off(confirm)
    write(crew.project, "tests/test_calc.py", TESTS)
    return child(root, "test-design")


def up_to_fix(crew: Crew, root: Task, *, code: str = CODE) -> Task:
    crew.do(up_to_design(crew, root), ("red", RED))
    write(crew.project, "calc.py", code)
    return child(root, "test-fix")


def test_whole_test_run_from_runnability_to_pass(project: Project, crew: Crew) -> None:
    root = begin(project, "/test the calculator")
    crew.do(up_to_fix(crew, root), ("done", DONE))
    assert fresh(root).status == "done"
    locked = Artifact.objects.get(task=child(root, "test-design"), name="tests/test_calc.py")
    assert bytes(locked.content.data).decode() == TESTS
    ran = Verification.objects.filter(task__root=root, layer="L3", exit_code__isnull=False)
    assert list(ran.order_by("pk").values_list("outcome", "grade", "exit_code")) == [
        ("passed", "rerun", 1), ("passed", "rerun", 0),
    ]  # fmt: skip


def test_names_of_files_alone_are_refused(project: Project, crew: Crew) -> None:
    root = begin(project, "/test the calculator")
    design = up_to_design(crew, root)
    Path(project.workspace, "tests/test_calc.py").unlink()
    with pytest.raises(Invalid, match="test_files are not in the workspace"):
        crew.do(design, ("red", RED))
    write(project, "tests/test_calc.py", TESTS)
    crew.hand_off(design)
    with pytest.raises(Invalid) as caught:
        crew.do(child(root, "test-fix"), ("done", DONE))
    assert [one["message"] for one in caught.value.errors] == ["calc.py: is not there"]


def only_defect(task: Task) -> Defect:
    (defect,) = Defect.objects.filter(task=task)
    assert defect.severity == "high"
    assert fresh(task).status != "done"
    return defect


def test_red_that_passes_when_we_run_it_is_a_high_defect(project: Project, crew: Crew) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    write(project, "calc.py", CODE)
    crew.do(design, ("red", RED))
    defect = only_defect(design)
    assert "TDD_VIOLATION: the tests pass before the code is there" in defect.title
    assert defect.evidence["exit_code"] == 0


@pytest.mark.parametrize(
    ("tests", "why"),
    [("x = 1\n", "no test ran"), (TESTS.replace("(1, 2), 3", "(1, 2), 4"), "1 passed")],
)
def test_red_without_a_failing_test_alone_is_a_high_defect(
    project: Project, crew: Crew, tests: str, why: str
) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    write(project, "calc.py", CODE)
    write(project, "tests/test_calc.py", tests)
    crew.do(design, ("red", RED))
    assert why in only_defect(design).title


@pytest.mark.parametrize(
    ("code", "results", "why"),
    [
        (CODE.replace("+", "-"), {"passed": 2, "failed": 0}, "IMPLEMENTATION_INCOMPLETE: exit 1"),
        (CODE, {"passed": 9, "failed": 0}, "claimed 9 passed, 0 failed; ran 2 passed, 0 failed"),
    ],
)
def test_green_that_is_none_when_we_run_it_is_a_high_defect(
    project: Project, crew: Crew, code: str, results: dict[str, int], why: str
) -> None:
    root = begin(project, "/test the calculator")
    fix = up_to_fix(crew, root, code=code)
    crew.do(fix, ("done", DONE | {"green": DONE["green"] | {"results": results}}))
    assert why in only_defect(fix).title
    assert fresh(root).status == "working"


def test_coverage_above_what_the_run_prints_is_a_high_defect(project: Project, crew: Crew) -> None:
    root = begin(project, "/test the calculator")
    prints = CODE + "print('TOTAL    40    10    75%')\n"
    fix = up_to_fix(crew, root, code=prints)
    crew.do(fix, ("done", DONE))
    assert "claimed 91.5 % of lines covered; the run says 75 %" in only_defect(fix).title


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("", "tests/test_calc.py loses 2 tests"),
        (
            TESTS.replace("    def test_neg", "    @unittest.skip('x')\n    def test_neg"),
            "disables",
        ),
        (TESTS.replace("self.assertEqual(add(1, -2), -1)", "add(1, -2)"), "loses 1 checks"),
    ],
)
def test_weaker_tests_are_seen_without_any_diff(
    project: Project, crew: Crew, tests: str, said: str
) -> None:
    root = begin(project, "/test the calculator")
    fix = up_to_fix(crew, root)
    write(project, "tests/test_calc.py", tests)
    with pytest.raises(Invalid) as caught:
        crew.do(fix, ("done", DONE))
    assert caught.value.code == "TDD_VIOLATION"
    assert said in caught.value.errors[0]["message"]


def test_tests_weakened_in_a_fix_are_seen_too(project: Project, crew: Crew) -> None:
    fix = up_to_fix(crew, begin(project, "/test the calculator"), code=CODE.replace("+", "-"))
    crew.do(fix, ("done", DONE))
    write(project, "calc.py", CODE)
    write(project, "tests/test_calc.py", TESTS.replace("self.assertEqual(add(1, -2), -1)", "pass"))
    held = claim_for_agent(
        agent=crew.maker, wish=Wish(seats=[Seat.FIXER]), actor=actor_of(crew.maker)
    )
    assert held is not None
    submit_result(
        hold=Hold(held.pk, crew.maker, held.lease_token),
        document={"comment": {"comment_type": "handoff", "body": "fixed"}, "status": "review"},
        actor=actor_of(crew.maker),
    )
    drive(project)
    titles = Defect.objects.filter(task=fix).values_list("title", flat=True)
    newest = Verification.objects.filter(task=fix, layer="L3", exit_code=0).last()
    assert newest is not None
    assert "TDD_VIOLATION: tests/test_calc.py loses 1 checks" in newest.findings[0]
    assert fresh(fix).status != "done", list(titles)


@override_settings(COUNTERSIGN_SANDBOX="none", COUNTERSIGN_UNSANDBOXED=False)
def test_tests_that_cannot_be_run_here_go_to_sir(project: Project, crew: Crew) -> None:
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.do(design, ("red", RED))
    assert fresh(design).status == "waiting_human"
    asked = open_decision_of(project, "final_review")
    assert any("no sandbox" in one for one in asked.content["findings"])


def test_command_of_the_guide_across_a_red_line_needs_sir(project: Project, crew: Crew) -> None:
    root = begin(project, "/test the calculator")
    crew.do(child(root, "run"), ("run", RAN))
    wipe = "python3 -m wipe drop database"
    guide = GUIDE.replace("python3 -m unittest tests.test_calc", wipe)
    crew.do(child(root, "prepare"), ("TEST_GUIDE.md", guide))
    assert wipe in guide_commands(root)
    assert wipe not in confirmed_commands(root)


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
    argv = ["python3", "-m", "unittest", "-v", "tests.test_calc"]
    design = up_to_design(crew, begin(project, "/test the calculator"))
    crew.begin(design)
    crew.give(design, "red", json.dumps(RED | {"run_command": " ".join(argv)}), "data")
    with pytest.raises(Conflict, match="is no command of"):
        crew.hand_off(design)
    crew.ask(design, f"May I run `{' '.join(argv)}`?")
    decide(open_decision_of(project, "waiting_human"), "approve")
    crew.hand_off(design)
    ran = Verification.objects.filter(task=design, layer="L3").last()
    assert ran is not None
    assert ran.command == {"argv": argv}


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
        ("coverage", {"lines": 80, "branches": 74.9, "functions": 90}, "COVERAGE_BELOW_THRESHOLD"),
        ("coverage", {"lines": 80, "branches": 75, "functions": 89.9}, "COVERAGE_BELOW_THRESHOLD"),
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
    fix = up_to_fix(crew, root)
    section = "refactor" if path == "coverage" else "green"
    bad = DONE | {section: DONE[section] | {path: value}}
    with pytest.raises(Invalid) as caught:
        crew.do(fix, ("done", bad))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("severity", "status", "asked"),
    [
        ("critical", "fixing", []),
        ("high", "fixing", ["high_notice"]),
        ("medium", "awaiting_sir", ["medium_defect"]),
    ],
)
def test_findings_of_a_security_review_are_graded_defects(
    project: Project, crew: Crew, severity: str, status: str, asked: list[str]
) -> None:
    root = begin(project, "/review-security the sign-in")
    step = child(root, "security")
    found = FINDING | {"severity": severity}
    crew.do(step, ("review", {"reviewed": ["login.py"], "findings": [found]}))
    crew.judge_it(verdict="pass")
    (defect,) = Defect.objects.filter(task=step)
    assert (defect.severity, defect.status, defect.title) == (
        severity, status, "The password is logged",
    )  # fmt: skip
    kinds = Decision.objects.filter(project=project, status="open").values_list("kind", flat=True)
    assert list(kinds) == asked
    assert fresh(root).status == "working"


def test_security_review_without_findings_is_done(project: Project, crew: Crew) -> None:
    root = begin(project, "/review-security the sign-in")
    crew.do(child(root, "security"), ("review", {"reviewed": ["login.py"], "findings": []}))
    crew.judge_it(verdict="pass")
    assert fresh(root).status == "done"
