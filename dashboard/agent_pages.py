"""What the agents' pages show: who may work, what each holds, and how its harness is set up.

Source: UI.md section 5.8, DESIGN sections 8 and 15.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.boards import seat_word
from dashboard.places import address, task_place, task_url
from dashboard.presenters import assignment_label
from dashboard.vocabulary import Label, Role
from orchestration.models import Assignment
from orchestration.scopes import Scope
from orchestration.selectors.agents import AgentRow, WorkRow

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

HERE = timedelta(minutes=15)
"""How long after its last call an agent counts as here; a cross-check is asked of no other."""
HOOK_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
HOOK_SECONDS = 10
TOKEN_VARIABLE = "COUNTERSIGN_TOKEN"  # noqa: S105  # the name of a variable, no secret
SCOPE_WORDS: dict[str, str | StrPromise] = {
    Scope.OBSERVE.value: _("reads"),
    Scope.EXECUTE.value: _("executes and fixes"),
    Scope.PLAN.value: _("plans and scores"),
    Scope.REVIEW.value: _("audits, reviews and cross-checks"),
    Scope.ORCHESTRATE.value: _("takes in work"),
}


@dataclass(frozen=True, slots=True)
class LeaseLine:
    """A lease that an agent holds."""

    url: str
    place: str
    seat: str
    title: str
    expires_at: datetime | None
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One agent. Shape: no `projects` means every project."""

    name: str
    url: str
    label: Label
    scopes: Sequence[tuple[str, str]]
    projects: Sequence[str]
    seen_at: datetime | None
    leases: Sequence[LeaseLine]
    token_hint: str
    is_revoked: bool


@dataclass(frozen=True, slots=True)
class WorkLine:
    """One piece of work of an agent. `calls` are on record for it."""

    url: str
    place: str
    seat: str
    title: str
    label: Label
    calls: int
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A text to copy, with what it is for."""

    id: str
    title: str
    note: str
    text: str


def agent_line(row: AgentRow) -> AgentLine:
    """Show one agent."""
    agent = row.agent
    return AgentLine(
        name=agent.name,
        url=address("agent", agent.name),
        label=_label(row),
        scopes=[(name, str(SCOPE_WORDS.get(name, name))) for name in agent.scopes],
        projects=[one.name for one in row.projects],
        seen_at=agent.last_seen_at,
        leases=[_lease(one) for one in row.leases],
        token_hint=agent.token_hint,
        is_revoked=agent.revoked_at is not None,
    )


def scope_choices(chosen: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Every scope with its words, and whether it is chosen."""
    return [(one.value, str(SCOPE_WORDS[one.value]), one.value in chosen) for one in Scope]


def _label(row: AgentRow) -> Label:
    agent = row.agent
    if agent.revoked_at is not None:
        return Label("ban", gettext("Token revoked"), Role.GREY)
    if row.leases:
        return Label("progress", gettext("At work"), Role.BLUE)
    seen = agent.last_seen_at
    if seen is None:
        return Label("circle-dashed", gettext("Never seen"), Role.GREY)
    if timezone.now() - seen <= HERE:
        return Label("circle-check", gettext("Here"), Role.GREEN)
    return Label("zzz", gettext("Away"), Role.GREY)


def _lease(row: Assignment) -> LeaseLine:
    return LeaseLine(
        url=task_url(row.task, row.project),
        place=task_place(row.task, row.project),
        seat=seat_word(row.seat),
        title=row.task.title,
        expires_at=row.lease_expires_at,
        is_stopped=row.is_clock_stopped,
    )


def work_line(row: WorkRow) -> WorkLine:
    """Show one piece of work."""
    held = row.assignment
    return WorkLine(
        url=task_url(held.task, held.project),
        place=task_place(held.task, held.project),
        seat=seat_word(held.seat),
        title=held.task.title,
        label=assignment_label(held.status),
        calls=row.calls,
        at=held.leased_at,
    )


def settings_of(base_url: str, token: str = "") -> list[Setting]:
    """Write what an agent's harness is set up with, for the address that the reader uses.

    The token stands in it where it is shown for the only time.
    """
    return [
        Setting(
            "set-token",
            gettext("Token"),
            gettext(
                "In the shell that starts the agent; the token was shown once when it was made."
            ),
            f"export {TOKEN_VARIABLE}={token or 'csa_…'}\nexport COUNTERSIGN_URL={base_url}",
        ),
        Setting(
            "set-claude",
            gettext("Claude Code"),
            gettext("In .claude/settings.json of the agent's working directory."),
            claude_settings(base_url),
        ),
        Setting(
            "set-codex",
            gettext("Codex"),
            gettext("ASSIGNMENT and LEASE_TOKEN are in the answer to the claim."),
            codex_command(base_url),
        ),
        Setting(
            "set-claim",
            gettext("Claim work"),
            gettext("Takes the oldest work that this token allows; waits up to 30 s for some."),
            claim_command(base_url),
        ),
    ]


def claude_settings(base_url: str) -> str:
    """Write the hooks of Claude Code that report to us."""
    hook: dict[str, Any] = {
        "type": "http",
        "url": f"{base_url}/api/hooks/claude-code",
        "headers": {"Authorization": f"Bearer ${TOKEN_VARIABLE}"},
        "allowedEnvVars": [TOKEN_VARIABLE],
        "timeout": HOOK_SECONDS,
    }
    return json.dumps({"hooks": {name: [{"hooks": [hook]}] for name in HOOK_EVENTS}}, indent=2)


def codex_command(base_url: str) -> str:
    """Write the command that runs Codex and reports each of its lines as it comes."""
    return (
        "codex exec --json - < prompt.md | while IFS= read -r line; do\n"
        "  printf '%s\\n' \"$line\" | curl -sS -o /dev/null \\\n"
        f'    -H "Authorization: Bearer ${TOKEN_VARIABLE}" \\\n'
        '    -H "X-Lease-Token: $LEASE_TOKEN" \\\n'
        '    -H "Content-Type: application/x-ndjson" \\\n'
        f'    --data-binary @- "{base_url}/api/assignments/$ASSIGNMENT/codex-events"\n'
        "done"
    )


def claim_command(base_url: str) -> str:
    """Write the command that claims the oldest work."""
    return (
        f'curl -sS -X POST "{base_url}/api/assignments/claim" \\\n'
        f'  -H "Authorization: Bearer ${TOKEN_VARIABLE}" \\\n'
        '  -H "Content-Type: application/json" -d \'{"wait": 30}\''
    )
