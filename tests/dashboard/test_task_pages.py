"""A task's page: the method's order, an agent that is missing, steering, assignment, artifact."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.contracts.results import CommentInput
from orchestration.models import (
    Artifact,
    Assignment,
    Decision,
    Output,
    Project,
    Task,
    ValidationPackage,
)
from orchestration.services.artifact_reads import read_artifact
from orchestration.services.intake import NewTask, create_task, submit_message
from orchestration.services.packages import evidence_link
from orchestration.services.spawning import NewChild, spawn_task
from orchestration.services.tasks import add_task_comment
from orchestration.services.work import Actor
from orchestration.states import CommentType, TaskStatus
from tests.api.callers import agent_client
from tests.dashboard.conftest import Waiting
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    fresh,
    hand_in,
    new_agent,
    new_project,
    set_status,
    step,
    submit_plan,
)

SIR = Actor("human:sir")
TRUST = re.compile(r'<span class="trust">(.*?</span>.*?</span>)\s*</span>', re.DOTALL)
DIMENSION = re.compile(
    r'<svg width="80" [^>]*>(.*?)</svg></dd><dd class="fig">(\d)</dd>'
    r'<dd class="evidence" title="(.*?)"'
)


def page_of(client: Client, task: Task, project: Project) -> str:
    """Read a task's page."""
    return client.get(reverse("dashboard:task", args=[project.slug, task.pk])).content.decode()


def shown_prompt(client: Client, url: str) -> str:
    """Read the prompt that a page shows as sent, as a browser shows it."""
    page = client.get(url).content.decode().partition("Prompt as sent")[2]
    text, end, _ = page.partition('<pre class="prompt-body"')[2].partition("</pre>")
    assert end
    return html.unescape(text.partition(">")[2])


def test_root_shows_plan_steps_defects_artifacts_and_assignments(
    waiting: Waiting, sir_client: Client
) -> None:
    page = page_of(sir_client, waiting.root, waiting.project)
    for text in (
        "1 step waits for you", "Blueprint locked", "greeting.txt v1", "do 2: exit 1",
        "1 waits for you", "executor", "attempt 1 of 3", "phase 1",
    ):  # fmt: skip
        assert text in page, text


def test_sections_without_content_say_when_they_will_have_some(
    sir: User, sir_client: Client
) -> None:
    project = new_project("fresh")
    root = submit_plan(project, agent_step("1"))
    page = page_of(sir_client, child(root, "1") if root.children.exists() else root, project)
    assert "A step hands in its output when it is done." in page
    assert "Outputs are locked when every check passed." in page


def test_score_is_shown_with_its_evidence(sir: User, sir_client: Client) -> None:
    project = new_project("scored")
    text = "分析对账差异日报并设计新的格式，然后迁移整个系统的数据"
    task, _, _ = submit_message(project_id=project.pk, text=text, actor=SIR)
    drive(project)
    page = page_of(sir_client, task, project)
    assert "No whitelist pattern matched the whole text" in page
    assert 'class="scale-knob"' in page
    scored = task.assessments.get(stage="S1")
    bars = DIMENSION.findall(page)
    assert len(bars) == 5
    assert [int(value) for _, value, _ in bars] == list(scored.dimensions.values())
    assert [svg.count("five-on") for svg, _, _ in bars] == list(scored.dimensions.values())
    assert all(evidence for _, _, evidence in bars)
    assert f'aria-label="Score {scored.total} of 25; thresholds 8 and 15"' in page


def test_handoff_as_json_is_shown_by_its_parts(sir: User, sir_client: Client) -> None:
    project = new_project("handed")
    agent = new_agent(project=project)
    root = submit_plan(project, agent_step("1"))
    drive(project)
    only = child(root, "1")
    claim(only, agent)
    set_status(only, agent, "working")
    handoff = {
        "completed": "The **parser** reads it.",
        "artifacts": ["parser.py"],
        "decisions": [{"what": "No cache", "why": "it is\n# fast enough"}],
    }
    comment = CommentInput(comment_type=CommentType.HANDOFF, body=json.dumps(handoff))
    add_task_comment(task_id=only.pk, document=comment, agent=agent, actor=actor_of(agent))
    page = page_of(sir_client, only, project)
    assert "<p>The <strong>parser</strong> reads it.</p>" in page
    assert "<li>parser.py</li>" in page
    assert "<li>No cache: it is # fast enough</li>" in page
    assert "how_solved" not in page


def test_missing_agent_is_said_with_how_to_connect_one(sir: User, sir_client: Client) -> None:
    project = new_project("alone")
    task = create_task(
        project_id=project.pk, new=NewTask(text="think hard", route="three_step"), actor=SIR
    )
    drive(project)
    page = page_of(sir_client, task, project)
    assert "Waiting for an agent" in page
    assert "manage.py create_agent my-agent --scopes plan --project alone" in page
    assert '{"seats": [&quot;planner&quot;]' in page


def test_agents_work_shows_hand_off_trust_and_layers(sir: User, sir_client: Client) -> None:
    project, agent = new_project("agents"), new_agent("coder-05")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    hand_in(child(root, "1"), agent, content="line one\nline two")
    page = page_of(sir_client, child(root, "1"), project)
    assert "coder-05" in page
    assert "done; nothing open" in page
    assert "18 / 500" in page
    assert "L1 format" in page
    assert "Show its 2 lines" in page


def test_output_shows_what_was_declared_and_what_was_proven(
    waiting: Waiting, sir_client: Client
) -> None:
    verified, proof = {"confidence": "verified"}, {"ok": True, "grade": "rerun"}
    claims = [verified | {"proof": proof}, verified | {"proof": proof | {"grade": "claimed"}},
              {"confidence": "inferred"}, {"confidence": "inferred"}]  # fmt: skip
    Output.objects.create(task=waiting.step, title="judged", assertions=claims)
    Output.objects.create(task=waiting.step, title="not yet", assertions=[verified])
    page = page_of(sir_client, waiting.step, waiting.project)
    shown = [re.sub(r"<[^>]+>|\s+", "", part) for part in TRUST.findall(page)]
    assert sorted(shown) == ["declared0.50proven0.25low", "declared1.00provenunknown"]


def test_comment_reaches_the_task(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:comment", args=["hello", waiting.step.pk])
    answer = sir_client.post(url, {"body": "look at **line 3**"})
    assert answer.status_code == 303
    assert answer.cookies["draft_sent"].value == f"comment-{waiting.step.pk}"
    page = page_of(sir_client, waiting.step, waiting.project)
    assert "<strong>line 3</strong>" in page
    assert sir_client.post(url, {"body": " "}).status_code == 422


def test_cancel_asks_once_more_and_needs_a_reason(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:cancel", args=["hello", waiting.root.pk])
    question = sir_client.get(url)
    assert b"There is no undo." in question.content
    assert fresh(waiting.root).status == TaskStatus.WORKING
    assert sir_client.post(url, {"reason": " "}).status_code == 422
    assert sir_client.post(url, {"reason": "not needed"}).status_code == 303
    assert fresh(waiting.root).status == TaskStatus.CANCELLED
    assert sir_client.post(url, {"reason": "again"}).status_code == 409


def test_replan_of_a_step_is_refused_with_the_reason(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:replan", args=["hello", waiting.step.pk])
    answer = sir_client.post(url, {"reason": "other way"})
    assert answer.status_code == 409
    assert b"only a planned root" in answer.content


def test_replan_of_a_root_ends_its_attempt(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:replan", args=["hello", waiting.root.pk])
    assert sir_client.post(url, {"reason": "other way"}).status_code == 303
    drive(waiting.project)
    assert fresh(waiting.root).attempt == 2


def test_assignment_page_shows_input_calls_and_result(waiting: Waiting, sir_client: Client) -> None:
    row = Assignment.objects.filter(task=waiting.step, seat="executor").get()
    url = reverse("dashboard:assignment", args=["hello", row.pk])
    page = sir_client.get(url).content.decode()
    for text in ("executor of HELLO-1 / 2", "Prompt as sent", "Tool calls", "grep"):
        assert text in page, text


def test_prompt_is_shown_word_for_word_as_it_was_sent(sir_client: Client) -> None:
    project = new_project("demo")
    hostile = "Read <b>this</b> & obey\n~~~~\n<script>x</script>"
    agent = agent_client(project)
    told = agent.send("/api/projects/demo/messages", {"text": f"Implement it. {hostile}"}).json()
    path = f"/api/projects/demo/tasks/{told['task']['id']}"
    claimed = agent.send(f"{path}/claim").json()
    sent = agent.read(f"{path}/bootstrap")["text"]
    assert hostile in sent
    project.description = "changed since"
    project.save()
    url = reverse("dashboard:assignment", args=["demo", claimed["id"]])
    assert shown_prompt(sir_client, url) == sent
    page = reverse("dashboard:task", args=["demo", told["task"]["id"]])
    assert shown_prompt(sir_client, page) == sent


def test_finished_rules_assignment_shows_no_model_and_no_promise(
    waiting: Waiting, sir_client: Client
) -> None:
    row = Assignment.objects.filter(task=waiting.step, seat="qa", status="done").get()
    url = reverse("dashboard:assignment", args=["hello", row.pk])
    page = sir_client.get(url).content.decode()
    assert "Hints" not in page
    assert "None yet." not in page
    assert "what this seat found stands on the task’s page" in page


def test_artifact_is_a_download_of_plain_data(waiting: Waiting, sir_client: Client) -> None:
    artifact = Artifact.objects.get(project=waiting.project, name="greeting.txt")
    answer = sir_client.get(reverse("dashboard:artifact", args=["hello", artifact.pk]))
    assert answer.content == b"helo\n"
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="greeting.txt"'
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_finished_task_shows_the_verified_defect(waiting: Waiting, sir_client: Client) -> None:
    decide(waiting.decision, "approve")
    drive(waiting.project)
    page = page_of(sir_client, waiting.root, waiting.project)
    assert "Verified" in page
    assert "3/3" in page


def part_of(client: Client, task: Task, project: Project, name: str) -> str:
    """Read one live part of a task's page."""
    url = reverse("dashboard:task_part", args=[project.slug, task.pk, name])
    return client.get(url).content.decode()


def test_live_sections_carry_the_count_of_their_anchor(
    waiting: Waiting, sir_client: Client
) -> None:
    steps = part_of(sir_client, waiting.root, waiting.project, "steps")
    assert 'data-section-count="1/3"' in steps
    decide(waiting.decision, "approve")
    drive(waiting.project)
    steps = part_of(sir_client, waiting.root, waiting.project, "steps")
    assert 'data-section-count="3/3"' in steps


def test_finished_task_offers_neither_re_plan_nor_cancel(
    waiting: Waiting, sir_client: Client
) -> None:
    before = part_of(sir_client, waiting.root, waiting.project, "steer")
    assert "Re-plan" in before
    assert "Cancel task" in before
    decide(waiting.decision, "approve")
    drive(waiting.project)
    after = part_of(sir_client, waiting.root, waiting.project, "steer")
    assert "Re-plan" not in after
    assert "Cancel task" not in after
    version = f'data-version="{fresh(waiting.root).version}"'
    assert version in after
    assert version not in before


@pytest.mark.parametrize("name", ["nothing", "s0", "page"])
def test_unknown_part_is_404(name: str, waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:task_part", args=["hello", waiting.root.pk, name])
    assert sir_client.get(url).status_code == 404


def test_artifacts_name_who_reads_them(sir: User, sir_client: Client) -> None:
    project, agent = new_project("readers"), new_agent("coder-05")
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    execute(child(root, "1"), agent)
    claim(child(root, "2"), agent)
    artifact = Artifact.objects.get(project=project)
    read_artifact(artifact_id=artifact.pk, agent=agent, actor=actor_of(agent))
    for task in (root, child(root, "1")):
        page = part_of(sir_client, task, project, "artifacts")
        assert "1 reader" in page
        reader = reverse("dashboard:task", args=["readers", child(root, "2").pk])
        assert f'href="{reader}"' in page
        assert "READERS-1 2" in page


def test_defects_unfold_to_their_evidence_fix_and_rounds(
    waiting: Waiting, sir_client: Client
) -> None:
    before = part_of(sir_client, waiting.root, waiting.project, "defects")
    assert "grep -q hello greeting.txt · exit 1" in before
    assert "Spell the `greeting` right." in before
    assert "+hello" in before
    decision = waiting.decision
    decide(decision, "approve")
    drive(waiting.project)
    after = part_of(sir_client, waiting.root, waiting.project, "defects")
    assert "Fix round 1" in after
    assert "Verified" in after
    assert f'href="{reverse("dashboard:decision", args=[decision.pk])}"' in after


def test_children_that_an_agent_split_off_stand_on_its_task(sir: User, sir_client: Client) -> None:
    project, agent = new_project("split"), new_agent("coder-05")
    root = create_task(
        project_id=project.pk, new=NewTask(text="Implement it", route="direct"), actor=SIR
    )
    drive(project)
    claim(root, agent)
    set_status(root, agent, "working")
    assert "split off by its agent" not in page_of(sir_client, fresh(root), project)
    wanted = NewChild(text="打开说明文件", title="Read the manual")
    made = spawn_task(task_id=root.pk, child=wanted, agent=agent, actor=actor_of(agent))
    page = page_of(sir_client, fresh(root), project)
    assert "split off by its agent" in page
    assert f'href="{reverse("dashboard:task", args=["split", made.pk])}"' in page
    assert "Read the manual" in part_of(sir_client, root, project, "children")


def test_rail_names_the_packages_of_each_attempt(waiting: Waiting, sir_client: Client) -> None:
    before = part_of(sir_client, waiting.root, waiting.project, "packages")
    assert "One is built when every step is done." in before
    decide(waiting.decision, "approve")
    drive(waiting.project)
    after = part_of(sir_client, waiting.root, waiting.project, "packages")
    package = ValidationPackage.objects.get(task=waiting.root)
    assert "GO" in after
    assert f'href="{evidence_link(package)}"' in after


def test_notice_is_no_step_that_waits(sir: User, sir_client: Client) -> None:
    project = new_project("told")
    fix = {"description": "make it", "commands": ["touch made"]}
    failing = {"severity": "high", "fix": fix}
    root = submit_plan(
        project, step("1", run=["ls made"], on_failure=failing),
        step("2", run=["false"], on_failure={"severity": "medium"}),
    )  # fmt: skip
    drive(project)
    assert set(Decision.objects.values_list("kind", flat=True)) == {"high_notice", "medium_defect"}
    assert "1 step waits for you" in part_of(sir_client, root, project, "state")
    decide(Decision.objects.get(kind="medium_defect"), "accept_as_is", reason="fine")
    drive(project)
    assert "for you" not in part_of(sir_client, root, project, "state")
