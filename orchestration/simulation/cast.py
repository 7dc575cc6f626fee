"""The scripted agents: what each says to the engine, through the services that REST calls too.

Source: seed 002, DESIGN section 14 ("Results by seat").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.contracts.mail import MailInput
from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import ToolCallInput
from orchestration.errors import CountersignError, HandshakeRequired
from orchestration.models import Agent, Assignment, Project, Task
from orchestration.rules.scoring import COLLABORATION
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import (
    Recorded,
    heartbeat_assignment,
    release_assignment,
    submit_result,
)
from orchestration.services.agents import create_agent
from orchestration.services.holds import Hold
from orchestration.services.mesh import send_mail
from orchestration.services.posts import Post
from orchestration.services.prompts import send_prompt
from orchestration.services.spawning import NewChild, spawn_task
from orchestration.services.tasks import StatusChange, change_status
from orchestration.services.tool_calls import record_tool_calls
from orchestration.services.work import SYSTEM, Actor
from orchestration.simulation.script import RootScript, StepScript
from orchestration.states import Complexity, Seat

BASE_URL = "http://simulation.invalid/"
COMPLEX_TEXT = (
    "从零搭建一个带用户认证的电商系统：先分析需求，然后设计整个架构，再开发前端和后端，最后部署。"
)
"""What an agent finds when it looks at the step called `big`: S1 puts it over 15."""
TOO_LONG = "x" * 501
MALFORMED: Mapping[str, Any] = {
    "summary": "a plan in a circle",
    "steps": [
        {"id": "a", "action": "one", "depends_on": ["b"]},
        {"id": "b", "action": "two", "depends_on": ["a"]},
    ],
}


class Broken(Exception):
    """The engine accepted what it must refuse, or refused what it must accept."""


@dataclass(frozen=True, slots=True)
class Player:
    """One scripted agent at work in one project."""

    agent: Agent
    project: Project

    @property
    def actor(self) -> Actor:
        """Who acts."""
        return Actor(f"agent:{self.agent.name}")

    def claim(self, *seats: Seat) -> Assignment | None:
        """Take the oldest work of some seats."""
        wish = Wish(seats=seats, project_ids=[self.project.pk])
        return claim_for_agent(agent=self.agent, wish=wish, actor=self.actor)

    def hold(self, held: Assignment) -> Hold:
        """Name the lease under which it speaks."""
        return Hold(held.pk, self.agent, held.lease_token)

    def submit(self, held: Assignment, document: Mapping[str, Any]) -> Recorded:
        """Hand in a result."""
        return submit_result(hold=self.hold(held), document=document, actor=self.actor)

    def read_prompt(self, held: Assignment) -> str:
        """Fetch the prompt as an agent does: it is stored as sent."""
        return send_prompt(
            task=held.task, assignment=held, base_url=BASE_URL, actor=self.actor
        ).text

    def report(self, held: Assignment, status: str, **rest: Any) -> Task:
        """Move its task as its assignee."""
        change = StatusChange(status=status, **rest)
        return change_status(
            task_id=held.task_id, change=change, agent=self.agent, actor=self.actor,
            lease_token=held.lease_token,
        )  # fmt: skip

    def begin(self, held: Assignment) -> None:
        """Start: where its complexity asks for it, after the handshake and with a light plan."""
        mode = COLLABORATION[Complexity(held.task.complexity or Complexity.LOW)]
        if not mode.handshake:
            self.report(held, "working")
            return
        self._require_refusal(held)
        document = MailInput(
            type=MailType.INTENT_CONFIRMATION,
            message_id=f"intent-{held.pk}-{held.token}",
            scope=tuple(held.task.scope or ("as asked",)),
            approach="step by step",
        )
        send_mail(Post(document, self.actor, self.agent, self.project, task=held.task))
        self.report(held, "working", light_plan=("look", "do it"))

    def _require_refusal(self, held: Assignment) -> None:
        try:
            self.report(held, "working")
        except HandshakeRequired:
            return
        raise Broken(f"{held.task_id} began without its handshake")

    def breathe(self, held: Assignment) -> None:
        """Send a heartbeat that shows progress: a tool call, and a note."""
        heartbeat_assignment(hold=self.hold(held), actor=self.actor, note="still at it")
        self.record_call(held, "ls", 0)

    def record_call(self, held: Assignment, command: str, exit_code: int) -> None:
        """Record a tool call, as an agent tells of it."""
        call = ToolCallInput(tool="Bash", command=command, exit_code=exit_code, outcome=(
            "ok" if exit_code == 0 else "failed"))  # fmt: skip
        record_tool_calls(hold=self.hold(held), calls=[call], actor=self.actor)

    def release(self, held: Assignment) -> None:
        """Give work back."""
        release_assignment(hold=self.hold(held), actor=self.actor, reason="somebody else's turn")

    def spawn(self, held: Assignment, number: int) -> Task:
        """Make a child of its task."""
        child = NewChild(text=f"打开第 {number} 页", title=f"page {number}")
        return spawn_task(
            task_id=held.task_id, child=child, agent=self.agent, actor=self.actor,
            lease_token=held.lease_token,
        )  # fmt: skip

    def require_refused(self, held: Assignment, document: Mapping[str, Any], code: str) -> None:
        """Hand in what must be refused. Errors: Broken when it is not, or with another code."""
        try:
            self.submit(held, document)
        except CountersignError as error:
            if error.code != code:
                raise Broken(f"refused as {error.code}, not {code}: {error.detail}") from error
            return
        raise Broken(f"a result that is {code} was accepted for task {held.task_id}")


def new_player(project: Project, name: str) -> Player:
    """Make an agent of a project."""
    agent, _ = create_agent(
        name=f"{project.slug}.{name}",
        scopes=("observe", "execute", "plan", "review"),
        projects=[project],
        actor=SYSTEM,
    )
    return Player(agent, project)


def output_of(held: Assignment, step: StepScript, *, claims: Any = ()) -> dict[str, Any]:
    """Write what a step hands in: a text, or a file of the workspace."""
    task = held.task
    about = {"title": "work", "type": "document", "assertions": list(claims)}
    text = f"the work of {task} in attempt {task.attempt}\n"
    if not step.writes_file:
        return {**about, "content": text}
    path = f"work/{task.number}.txt"
    place = Path(task.project.workspace) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return {**about, "path": path}


def finished(held: Assignment, step: StepScript, *, claims: Any = ()) -> dict[str, Any]:
    """Write a result that is handed in for review."""
    return {
        "output": output_of(held, step, claims=claims),
        "comment": "Done as planned. Nothing is open.",
        "status": "review",
    }


def claim_of(text: str, confidence: str = "verified") -> dict[str, str]:
    """Write one assertion."""
    grounds = "evidence" if confidence == "verified" else "reasoning"
    return {"claim": text, "confidence": confidence, grounds: "pytest"}


def plan_of(root: RootScript, parent: str) -> dict[str, Any]:
    """Write the plan of a root, or of the step of it that is planned again."""
    prefix = f"{parent}/" if parent else ""
    steps = []
    for path, step in root.steps.items():
        key = path.removeprefix(prefix)
        if not path.startswith(prefix) or "/" in key:
            continue
        is_big = any(one.startswith(f"{path}/") for one in root.steps)
        steps.append(
            {
                "id": key,
                "action": COMPLEX_TEXT if is_big else f"do part {key}",
                "depends_on": list(step.after),
                "delegate": is_big,
            }
        )
    return {"summary": f"plan of {root.key}", "steps": steps}
