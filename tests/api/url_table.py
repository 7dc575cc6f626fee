"""The API's URL table as tests walk it: every path, every method, with rows of a real project.

A path that is new fails `test_url_table.py` until it stands in `HUMANS_ONLY` or `AGENTS_TOO`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from orchestration.api import urls
from orchestration.contracts.loop import Verdict
from orchestration.contracts.validation import Package
from orchestration.models import Agent, Project, WorkflowRun
from orchestration.services.knowledge import PageText, write_experience, write_page
from orchestration.services.packages import store_package
from orchestration.services.work import SYSTEM, unit_of_work
from tests.api.callers import Caller
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    execute,
    new_agent,
    set_status,
    submit_plan,
)
from tests.services.mesh_rooms import write

METHODS = ("get", "post", "put", "patch", "delete")
PUBLIC = frozenset({"api-schema", "api-docs", "api-nothing"})
HUMANS_ONLY = frozenset(
    {
        ("api-projects", "post"),
        ("api-project", "patch"),
        ("api-project-pause", "post"),
        ("api-project-resume", "post"),
        ("api-project-archive", "post"),
        ("api-task-cancel", "post"),
        ("api-task-replan", "post"),
        ("api-audit-verify", "post"),
        ("api-integrity", "post"),
        ("api-decisions", "get"),
        ("api-decisions-bulk", "post"),
        ("api-decision", "get"),
        ("api-decide", "post"),
        ("api-seen", "post"),
        ("api-draft", "put"),
    }
)
"""What no agent may do, whatever its scopes."""
AGENTS_TOO = frozenset(
    {
        ("api-projects", "get"),
        ("api-project", "get"),
        ("api-messages", "post"),
        ("api-tasks", "get"),
        ("api-tasks", "post"),
        ("api-tasks-import", "post"),
        ("api-task", "get"),
        ("api-task-claim", "post"),
        ("api-task-heartbeat", "post"),
        ("api-task-release", "post"),
        ("api-task-status", "post"),
        ("api-task-outputs", "post"),
        ("api-task-comments", "post"),
        ("api-task-progress", "post"),
        ("api-task-spawn", "post"),
        ("api-task-deviations", "post"),
        ("api-validation", "get"),
        ("api-validation", "post"),
        ("api-validation-package", "get"),
        ("api-control-commands", "get"),
        ("api-shared-documents", "get"),
        ("api-shared-document", "get"),
        ("api-shared-document", "put"),
        ("api-shared-versions", "get"),
        ("api-mail", "get"),
        ("api-mail", "post"),
        ("api-task-archive", "get"),
        ("api-mail-read", "post"),
        ("api-task-bootstrap", "get"),
        ("api-task-questions", "post"),
        ("api-task-documents", "get"),
        ("api-workflow-runs", "get"),
        ("api-workflow-runs", "post"),
        ("api-workflows", "get"),
        ("api-insights", "get"),
        ("api-experiences", "get"),
        ("api-experiences", "post"),
        ("api-experience", "get"),
        ("api-experience-review", "post"),
        ("api-wiki", "get"),
        ("api-wiki", "post"),
        ("api-wiki-page", "get"),
        ("api-wiki-page", "put"),
        ("api-wiki-versions", "get"),
        ("api-wiki-review", "post"),
        ("api-events", "get"),
        ("api-audit", "get"),
        ("api-artifacts", "get"),
        ("api-artifact", "get"),
        ("api-artifact-defects", "post"),
        ("api-claim", "post"),
        ("api-heartbeat", "post"),
        ("api-result", "post"),
        ("api-release", "post"),
        ("api-tool-calls", "post"),
        ("api-codex-events", "post"),
        ("api-claude-code", "post"),
        ("api-log", "post"),
    }
)
"""What agents may do with the right scope, in their own projects."""
OWN_ONLY = frozenset(
    {("api-projects", "get"), ("api-claim", "post"), ("api-mail", "get"), ("api-workflows", "get")}
)
"""Paths without a name in them: they answer with the caller's own rows."""
NOT_OURS = frozenset({("api-claude-code", "post")})
"""Their body is another program's document; a later version of it may hold more."""
NAMED_IN_BODY = frozenset({("api-mail", "post"), ("api-mail-read", "post")}) | NOT_OURS
"""What a call is about stands in its body; `test_mail_api.py` asks for what strangers may not see.
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path. Shape: `path` as the table writes it, below `/api/`."""

    name: str
    method: str
    path: str

    @property
    def key(self) -> tuple[str, str]:
        """What the tables name it by."""
        return self.name, self.method

    def filled(self, names: Mapping[str, str]) -> str:
        """The address with real names in it. Errors: KeyError for a name that tests do not know."""
        return "/api/" + re.sub(r"<str:(\w+)>", lambda found: names[found[1]], self.path)

    def ask(self, caller: Caller, names: Mapping[str, str], body: str = "{}") -> Any:
        """Ask as somebody, with a JSON body where the method has one."""
        if self.method == "get":
            return caller.get(self.filled(names))
        return caller.generic(self.method.upper(), self.filled(names), body, "application/json")


def endpoints() -> Sequence[Endpoint]:
    """Every endpoint that is not public."""
    found = []
    for pattern in urls.urlpatterns:
        name = str(pattern.name)
        view = getattr(pattern.callback, "cls", None)
        if name not in PUBLIC:
            path = str(pattern.pattern)
            found += [Endpoint(name, one, path) for one in METHODS if hasattr(view, one)]
    return found


def rows_of(project: Project, holder: Agent) -> dict[str, str]:
    """Make one row of each kind in a project; one agent holds the task and its assignment.

    Shape: the names of the table's parameters, and what a holder and a decider have to send.
    """
    root = submit_plan(project, agent_step("made"), agent_step("asked"), agent_step("held"))
    drive(project)
    execute(child(root, "made"), new_agent("maker", project=project))
    asker = new_agent("asker", project=project)
    asked, held = child(root, "asked"), child(root, "held")
    claim(asked, asker)
    set_status(asked, asker, "waiting_human", detail="Which colour?")
    lease = claim(held, holder)
    set_status(held, holder, "working")
    decision = project.decisions.get()
    run = WorkflowRun.objects.create(
        project=project, task=root, name="test", change_id="test-tea", directory=".cospec",
        text="tea",
    )  # fmt: skip
    artifact = project.artifacts.get()
    run.documents.create(path=".cospec/TEST_GUIDE.md", artifact=artifact, updated_at=timezone.now())
    write(held, holder, "one", None, name="design")
    experience = write_experience(project=project, title="Tea", body="Serve it", actor=SYSTEM)
    text = PageText("Serve the tea")
    page = write_page(project=project, name="tea", text=text, actor=SYSTEM)
    with unit_of_work(SYSTEM) as work:
        package = store_package(work, held, Package(verdict=Verdict.GO))
    return {
        "pid": project.slug,
        "task": str(held.pk),
        "assignment": str(lease.pk),
        "artifact": str(artifact.pk),
        "decision": str(decision.pk),
        "experience": str(experience.pk),
        "page": page.name,
        "package": str(package.pk),
        "lease_token": lease.lease_token,
        "digest": decision.digest,
        "name": "design",
    }
