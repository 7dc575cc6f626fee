"""Work that is not code passes and fails its review for reasons that we found ourselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project, Task
from tests.api.callers import Caller, agent_client
from tests.api.test_assignments_api import claim, here, lease
from tests.evidence.test_worked_examples import claim_confirmed, hand_in, shown, step_of
from tests.factories import drive, fresh

SURVEY = "month,p99\n2026-10,500\n2026-11,480\n"
FINDING = """# Latency

P99 is 480 ms in November [L2: data/latency.csv]. It was 500 ms in October, as
[the survey](data/latency.csv) says.[^1]

[^1]: Taken from the gateway's own log.
"""
FACT = {
    "claim": "P99 was 480 ms in November",
    "confidence": "verified",
    "evidence": "data/latency.csv",
    "verify_command": "grep -q 2026-11,480 data/latency.csv",
}
SOURCES = "grep -q Sources report.md"
REPORT = "# Report\n\nAll is well.\n\n## Sources\n\n* [survey](data/latency.csv)\n"


def researched(project: Project, bob: Caller, text: str, *claims: dict[str, Any]) -> Task:
    """Hand in a finding of a research step of medium complexity. Return the step."""
    task = step_of(project, action="Find out what the latency is")
    Task.objects.filter(pk=task.pk).update(complexity="medium")
    held = claim_confirmed(bob, task)
    data = Path(project.workspace, "data")
    data.mkdir()
    (data / "latency.csv").write_text(SURVEY)
    document = {"type": "document", "content": text, "assertions": list(claims)}
    hand_in(bob, held, "Read the survey; nothing is open.", **document)
    return task


def reported(project: Project, bob: Caller, text: str) -> Task:
    """Hand in a report that a document step expects, with a planned check. Return the step."""
    task = step_of(project, expected_artifacts=["report.md"], verify=[SOURCES])
    held = claim(bob, "executor")
    data = Path(project.workspace, "data")
    data.mkdir()
    (data / "latency.csv").write_text(SURVEY)
    Path(project.workspace, "report.md").write_text(text)
    hand_in(bob, held, "written", path="report.md", type="document")
    return task


def findings(task: Task) -> list[tuple[str, str, str]]:
    """What speaks against a step: key, severity and reason of each defect."""
    rows = task.defects.order_by("pk")
    return [(one.source_key, one.severity, one.description) for one in rows]


def test_research_step_passes_by_what_it_cites(project: Project, bob: Caller) -> None:
    task = researched(project, bob, FINDING, FACT)
    drive(project)
    task = fresh(task)
    assert (task.status, findings(task)) == ("done", [])
    assert task.reviews.get().verdict == "pass"
    assert task.artifacts.count() == 1
    output = task.outputs.get()
    assert output.assertions[0]["proof"]["ok"] is True
    assert "[独立验证 ✓] 文件存在: data/latency.csv" in shown(bob, task)[0]


@pytest.mark.parametrize(
    ("target", "outcome", "status"),
    [
        ("data", "passed", "done"),
        ("../data", "not_possible", "done"),
        ("../../../../etc", "not_possible", "done"),
        ("no-folder", "failed", "review"),
    ],
)
def test_folder_inside_the_workspace_is_a_source_and_nothing_outside_is(
    project: Project, bob: Caller, target: str, outcome: str, status: str
) -> None:
    task = reported(project, bob, f"{REPORT}* [all of it]({target})\n")
    drive(project)
    rows = fresh(task).verifications.exclude(finding_key="claim:file:data/latency.csv")
    [row] = rows.filter(finding_key__startswith="claim:file:")
    assert (row.outcome, fresh(task).status) == (outcome, status)


@pytest.mark.parametrize("target", ["%00", "a%00.md", "%1b[2J", "%ff.md", "%ed%a0%80.md"])
def test_target_that_is_no_path_breaks_nothing(project: Project, bob: Caller, target: str) -> None:
    task = reported(project, bob, f"{REPORT}* [all of it]({target})\n")
    drive(project)
    assert fresh(task).status in ("done", "review")
    assert task.reviews.exists()


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (
            "[the survey](data/latency.csv)",
            "[the survey](data/guess.csv)",
            ("claim:file:data/guess.csv", "high", "there is no data/guess.csv in the workspace"),
        ),
        (
            "[L2: data/latency.csv]",
            "[L2: data/dream.csv]",
            ("claim:file:data/dream.csv", "high", "there is no data/dream.csv in the workspace"),
        ),
        (
            "[^1]: Taken",
            "Taken",
            ("claim:footnote:[^1]", "high", "the text has no note [^1]"),
        ),
    ],
    ids=["link", "anchor", "footnote"],
)
def test_research_step_fails_over_a_source_that_is_not_there(
    project: Project, bob: Caller, before: str, after: str, found: tuple[str, str, str]
) -> None:
    task = researched(project, bob, FINDING.replace(before, after), FACT)
    drive(project)
    task = fresh(task)
    assert (task.status, findings(task)) == ("review", [found])
    assert task.artifacts.count() == 0
    assert any(line.startswith("[独立验证 ✗]") for line in shown(bob, task))


def test_research_step_fails_over_a_fact_that_its_source_does_not_hold(
    project: Project, bob: Caller
) -> None:
    wrong = FACT | {"verify_command": "grep -q 2026-11,470 data/latency.csv"}
    task = researched(project, bob, FINDING, wrong)
    drive(project)
    task = fresh(task)
    [(_, severity, description)] = findings(task)
    assert (task.status, severity) == ("review", "high")
    assert description == FACT["claim"]
    evidence = task.defects.get().evidence
    assert (evidence["exit_code"], evidence["grade"]) == (1, "rerun")


def test_reviewers_pass_does_not_cover_a_source_that_is_not_there(project: Project) -> None:
    Project.objects.update(policy_json='{"seats": {"qa": ["external"]}}')
    bob, judge = agent_client(project, name="bob"), agent_client(project, name="judge")
    text = FINDING.replace("(data/latency.csv)", "(data/guess.csv)")
    task = researched(project, bob, text)
    drive(project)
    review = claim(judge, "qa")
    judge.send(here(review, "result"), lease(review, verdict="pass", defects=[]))
    drive(project)
    task = fresh(task)
    assert task.status == "review"
    assert [key for key, *_ in findings(task)] == ["claim:file:data/guess.csv"]


def test_document_step_passes_with_its_file_its_sources_and_its_check(
    project: Project, bob: Caller
) -> None:
    task = reported(project, bob, REPORT)
    drive(project)
    task = fresh(task)
    assert (task.status, findings(task)) == ("done", [])
    assert [one.name for one in task.artifacts.all()] == ["report.md"]
    assert [(one.layer, one.outcome) for one in task.verifications.filter(finding_key="verify:0")
            ] == [("L3", "passed")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("# Report\n\n[survey](data/latency.csv)\n", "verify:0"),
        (REPORT.replace("latency.csv", "lost.csv"), "claim:file:data/lost.csv"),
    ],
    ids=["check", "source"],
)
def test_document_step_fails_over_what_we_found_in_its_file(
    project: Project, bob: Caller, text: str, key: str
) -> None:
    task = reported(project, bob, text)
    drive(project)
    task = fresh(task)
    assert task.status == "review"
    assert [(found, severity) for found, severity, _ in findings(task)] == [(key, "high")]


def test_document_that_is_not_there_is_redone_and_not_reviewed(
    project: Project, bob: Caller
) -> None:
    task = step_of(project, expected_artifacts=["report.md"])
    hand_in(bob, claim(bob, "executor"), "written", content="see report.md", type="document")
    drive(project)
    task = fresh(task)
    assert (task.status, task.attempt) == ("pending", 2)
    assert "report.md" in task.failure_context[-1]["root_cause"]


@pytest.mark.parametrize("category", ["scope", "granularity", "assumption"])
def test_research_step_fails_qa_with_its_category(project: Project, category: str) -> None:
    Project.objects.update(policy_json='{"seats": {"qa": ["external"]}}')
    bob, judge = agent_client(project, name="bob"), agent_client(project, name="judge")
    task = step_of(project)
    hand_in(bob, claim(bob, "executor"), "found", content="P99 = 500 ms [L2: grafana]")
    review = claim(judge, "qa")
    defect = {"severity": "low", "category": category, "title": "not what was asked"}
    body = lease(review, verdict="fail", defects=[defect], low_defects="fix")
    assert judge.send(here(review, "result"), body).status_code == 200
    assert fresh(task).defects.get().category == category
    path = f"/api/projects/demo/tasks/{task.pk}?expand=all"
    [output] = bob.read(path)["outputs"]
    assert output["anchors"] == [{"anchor_level": 2, "text": "grafana"}]
    assert output["anchor_density"] == 1.0
