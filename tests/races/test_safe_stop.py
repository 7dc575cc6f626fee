"""A safe stop against what is written at the same moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestration.contracts.mail import MailInput
from orchestration.contracts.mail_types import MailType
from orchestration.errors import Conflict
from orchestration.models import (
    Agent,
    Artifact,
    ArtifactRead,
    Assignment,
    Experience,
    Mail,
    MailRecipient,
    Project,
)
from orchestration.services.artifact_reads import read_artifact
from orchestration.services.integrity import stop_safely
from orchestration.services.integrity_looks import FaultKind, IntegrityFault
from orchestration.services.knowledge import write_experience
from orchestration.services.lookups import lock_project
from orchestration.services.mailbox import mark_mail_read
from orchestration.services.prompts import send_prompt
from orchestration.services.work import SYSTEM, unit_of_work
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    new_agent,
    new_project,
    post,
    set_status,
    step,
)
from tests.races.contest import SIR, on_both, race, started_plan

pytestmark = on_both
FAULT = IntegrityFault(FaultKind.ARTIFACT, "artifact:1", "planted")


class Site:
    """A project with a locked file, a mail, and a step that an agent works on."""

    def __init__(self) -> None:
        self.project: Project = new_project()
        root = started_plan(
            self.project,
            step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
            agent_step("2"),
        )
        self.agent: Agent = new_agent(project=self.project)
        self.other: Agent = new_agent(project=self.project)
        self.task = child(root, "2")
        self.lease: Assignment = claim(self.task, self.agent)
        set_status(self.task, self.agent, "working")
        self.mail = self.send(self.other, self.agent)

    def send(self, sender: Agent, to: Agent) -> Mail:
        """Send a mail that says something."""
        letter = MailInput(
            type=MailType.INFORM, to=(to.name,), content="news", message_id=f"to-{to.name}"
        )
        return post(letter, sender, project=self.project)

    def stop(self) -> None:
        """Put the project in safe stop."""
        with unit_of_work(SYSTEM) as work:
            stop_safely(work, lock_project(self.project.pk), [FAULT], source="test")


WRITES: dict[str, Callable[[Site], object]] = {
    "experience": lambda site: write_experience(
        project=site.project, title="x", body="y", actor=SIR
    ),
    "mail": lambda site: site.send(site.agent, site.other),
    "mail_read": lambda site: mark_mail_read(
        received=[site.mail.recipients.get().pk], actor=actor_of(site.agent)
    ),
    "artifact": lambda site: read_artifact(
        artifact_id=Artifact.objects.get(name="made.txt").pk,
        agent=site.agent,
        actor=actor_of(site.agent),
    ),
    "prompt": lambda site: send_prompt(
        task=site.task, assignment=site.lease, base_url="https://x", actor=actor_of(site.agent)
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_while_a_project_stops_is_refused(name: str) -> None:
    site = Site()
    _, rival = race(site.stop, lambda: WRITES[name](site))
    with pytest.raises(Conflict) as refused:
        rival.result()
    assert refused.value.code == "project_safe_stop"
    assert not Experience.objects.exists()
    assert not ArtifactRead.objects.exists()
    assert Mail.objects.count() == 1
    assert MailRecipient.objects.get().read_at is None
    assert Assignment.objects.get(pk=site.lease.pk).prompt == ""
