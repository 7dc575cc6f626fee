"""Whatever door a write comes through, a project in safe stop does not take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from orchestration.contracts.mail import MailInput, SharedDocumentInput
from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import DeviationInput, OutputInput
from orchestration.errors import Conflict
from orchestration.models import (
    Agent,
    Artifact,
    Assignment,
    AuditEvent,
    Defect,
    Project,
    Task,
    WikiPage,
)
from orchestration.services.artifact_reads import read_artifact
from orchestration.services.deviations import record_deviation
from orchestration.services.integrity import stop_safely
from orchestration.services.integrity_looks import FaultKind, IntegrityFault
from orchestration.services.knowledge import (
    PageText,
    review_experience,
    review_page,
    write_experience,
    write_page,
)
from orchestration.services.locked_defects import report_defect
from orchestration.services.lookups import lock_project
from orchestration.services.mailbox import mark_mail_read
from orchestration.services.progress import Progress, report_progress
from orchestration.services.projects import archive_project
from orchestration.services.prompts import send_prompt
from orchestration.services.shared_documents import write_shared_document
from orchestration.services.spawning import NewChild, spawn_task
from orchestration.services.tasks import (
    StatusChange,
    add_task_output,
    change_status,
    heartbeat_task,
    release_task,
)
from orchestration.services.work import SYSTEM, Actor, unit_of_work
from orchestration.states import KnowledgeStatus
from tests.api.callers import person
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    drive,
    new_agent,
    new_project,
    post,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
FAULT = IntegrityFault(FaultKind.ARTIFACT, "artifact:1", "planted")
MADE = "sh -c 'echo hi > made.txt'"


class Site:
    """A project with a page, an experience, a locked file and a step that an agent works on."""

    def __init__(self) -> None:
        self.project = new_project("demo")
        self.page = write_page(
            project=self.project, name="notes", text=PageText("one"), actor=Actor("agent:a")
        )
        self.experience = write_experience(
            project=self.project, title="x", body="y", actor=Actor("agent:a")
        )
        self.root = submit_plan(
            self.project,
            step("1", run=[MADE], expected_artifacts=["made.txt"]),
            agent_step("2"),
            is_trusted=True,
        )
        drive(self.project)
        self.agent = new_agent(project=self.project)
        self.lease = claim(self.step, self.agent)
        set_status(self.step, self.agent, "working")
        self.other = new_agent(project=self.project)
        self.mail = post(self.letter(self.agent), self.other, project=self.project)

    @property
    def step(self) -> Task:
        """The step that the agent works on."""
        return child(self.root, "2")

    @property
    def artifact(self) -> Artifact:
        """The file that step 1 locked."""
        return Artifact.objects.get(name="made.txt")

    def letter(self, to: Agent) -> MailInput:
        """Write a mail that says something."""
        return MailInput(
            type=MailType.INFORM, to=(to.name,), content="news", message_id=f"to-{to.name}"
        )

    def stop(self) -> None:
        """Put the project in safe stop."""
        with unit_of_work(SYSTEM) as work:
            stop_safely(work, lock_project(self.project.pk), [FAULT], source="test")

    def held(self) -> dict[str, Any]:
        """What a call of the agent about its step names."""
        return {"task_id": self.step.pk, "agent": self.agent, "actor": actor_of(self.agent)}


@pytest.fixture
def site() -> Site:
    return Site()


KNOWLEDGE: dict[str, Callable[[Site], object]] = {
    "write_page": lambda site: write_page(
        project=site.project, name="notes", text=PageText("two"), actor=SIR
    ),
    "write_experience": lambda site: write_experience(
        project=site.project, title="new", body="z", actor=SIR
    ),
    "review_page": lambda site: review_page(
        page_id=site.page.pk, verdict=KnowledgeStatus.ACCEPTED, actor=SIR
    ),
    "review_experience": lambda site: review_experience(
        experience_id=site.experience.pk, verdict=KnowledgeStatus.REJECTED, actor=SIR
    ),
    "report_defect": lambda site: report_defect(
        artifact_id=site.artifact.pk,
        document={"severity": "medium", "title": "a gap"},
        actor=SIR,
    ),
}
MAIL: dict[str, Callable[[Site], object]] = {
    "mail": lambda site: post(site.letter(site.other), site.agent, project=site.project),
    "mail_read": lambda site: mark_mail_read(
        received=[site.mail.recipients.get().pk], actor=actor_of(site.agent)
    ),
}
READS: dict[str, Callable[[Site], object]] = {
    "artifact": lambda site: read_artifact(
        artifact_id=site.artifact.pk, agent=site.agent, actor=actor_of(site.agent)
    ),
    "prompt": lambda site: send_prompt(
        task=site.step,
        assignment=Assignment.objects.get(pk=site.lease.pk),
        base_url="https://countersign.example",
        actor=actor_of(site.agent),
    ),
}
"""Reads of an agent that leave a record."""
WRITES: dict[str, Callable[[Site], object]] = {
    **KNOWLEDGE,
    **MAIL,
    **READS,
    "deviation": lambda site: record_deviation(
        task_id=site.root.pk,
        asked=DeviationInput(change="skipped", step="2", reason="no need"),
        actor=SIR,
        is_sir=True,
    ),
    "document": lambda site: write_shared_document(
        task_id=site.step.pk,
        name="draft",
        document=SharedDocumentInput(content="x"),
        seen_version=0,
        actor=SIR,
    ),
    "output": lambda site: add_task_output(
        document=OutputInput(title="t", content="x"), data=b"x", **site.held()
    ),
    "progress": lambda site: report_progress(progress=Progress(step=1), **site.held()),
    "spawn": lambda site: spawn_task(child=NewChild(text="look it up"), **site.held()),
    "status": lambda site: change_status(change=StatusChange("failed", "no"), **site.held()),
    "release": lambda site: release_task(**site.held()),
}


@pytest.mark.parametrize("name", WRITES)
def test_no_service_writes_in_a_stopped_project(site: Site, name: str) -> None:
    site.stop()
    before = AuditEvent.objects.count()
    with pytest.raises(Conflict) as refused:
        WRITES[name](site)
    assert refused.value.code == "project_safe_stop"
    assert AuditEvent.objects.count() == before
    assert not Defect.objects.exists()


@pytest.mark.parametrize("name", [*MAIL, *READS])
def test_what_was_recorded_before_a_stop_is_answered_again(site: Site, name: str) -> None:
    first = WRITES[name](site)
    site.stop()
    before = AuditEvent.objects.count()
    again = WRITES[name](site)
    assert (first, again) in [(first, first), (1, 0)]
    assert AuditEvent.objects.count() == before


def test_sir_reads_a_locked_file_of_a_stopped_project(site: Site) -> None:
    site.stop()
    assert read_artifact(artifact_id=site.artifact.pk, agent=None, actor=SIR) == b"hi\n"


def test_a_heartbeat_is_taken_in_safe_stop(site: Site) -> None:
    site.stop()
    assert heartbeat_task(**site.held()).status == "leased"


@pytest.mark.parametrize("name", [*KNOWLEDGE, *MAIL])
def test_knowledge_and_mail_of_an_archived_project_stays_as_it_is(site: Site, name: str) -> None:
    archive_project(project_id=site.project.pk, actor=SIR)
    with pytest.raises(Conflict) as refused:
        WRITES[name](site)
    assert refused.value.code == "project_archived"


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("new-page/", {"name": "more", "title": "More", "body": "kept words"}),
        ("new-experience/", {"title": "More", "body": "kept words"}),
    ],
)
def test_a_form_says_why_and_keeps_the_text(site: Site, path: str, sent: dict[str, str]) -> None:
    site.stop()
    client = Client()
    client.force_login(person("sir", "sir"))
    answer = client.post(f"/knowledge/demo/{path}", sent)
    assert answer.status_code == 409
    shown = answer.content.decode()
    assert "the project stands at “Safe stop”" in shown
    assert "kept words" in shown
    assert not WikiPage.objects.filter(name="more").exists()
    assert Project.objects.get().experiences.count() == 1
