"""Which sandbox this process has, and which commands run in it.

Source: DESIGN section 8 ("Commands on our machine"); docs/sandbox.md.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from orchestration.errors import Unavailable
from orchestration.models import Assignment, Blueprint, Deviation, Task
from orchestration.policy import Backend
from orchestration.runner.probing import KINDS, Finding, find_sandbox
from orchestration.runner.sandbox import Sandbox
from orchestration.states import Seat

AUTO, NONE = "auto", "none"
NO_SANDBOX = "not possible: no sandbox for code that agents wrote"

_probing = threading.Lock()


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What holds in this process. Shape: `sandbox` None where nothing does; `tried` says why."""

    sandbox: Sandbox | None
    tried: tuple[Finding, ...]
    is_switched_off: bool

    @property
    def is_code_of_agents_run(self) -> bool:
        """Whether code that agents wrote is run here at all."""
        return self.is_switched_off or self.sandbox is not None


def sandbox_report() -> SandboxReport:
    """Tell which sandbox holds here; the first call tries them, which takes tenths of a second."""
    with _probing:
        sandbox, tried = _found(
            settings.COUNTERSIGN_SANDBOX,
            Path(settings.COUNTERSIGN_DATA_DIR),
            tuple(settings.COUNTERSIGN_SANDBOX_READ),
        )
    return SandboxReport(sandbox, tried, is_switched_off=settings.COUNTERSIGN_UNSANDBOXED)


@functools.cache
def _found(
    choice: str, data_dir: Path, extra: tuple[Path, ...]
) -> tuple[Sandbox | None, tuple[Finding, ...]]:
    if choice == NONE:
        return None, ()
    kinds = [kind for kind in KINDS if choice in (AUTO, kind)]
    return find_sandbox([data_dir], extra, kinds=kinds)


def is_sandbox_missing(task: Task) -> bool:
    """Whether commands of a task need a sandbox that is not there."""
    return has_agent_code(task) and not sandbox_report().is_code_of_agents_run


def sandbox_of(task: Task, *, is_proposed: bool = False) -> Sandbox | None:
    """Return the sandbox that a command of a task runs in; None: it runs with our own rights.

    In it runs whatever an agent wrote: files of the workspace, the plan, or, with `is_proposed`,
    the command itself. A command alone that Sir or the allow-list let through runs without one
    where there is none: he saw all of it. Errors: Unavailable where one is needed and missing.
    """
    if settings.COUNTERSIGN_UNSANDBOXED:
        return None
    is_needed = has_agent_code(task)
    if not (is_needed or is_proposed or is_planned_by_agent(task)):
        return None
    found = sandbox_report().sandbox
    if found is None and is_needed:
        raise Unavailable(NO_SANDBOX)
    return found


def has_agent_code(task: Task) -> bool:
    """Whether an agent ever held a piece of work that may write into this task's workspace.

    It may write from the moment it holds the work, whatever becomes of its lease; what it uploads
    comes under a lease too. A fix that it only proposes does not count: what is applied then is
    what Sir signed.
    """
    rows = Assignment.objects.filter(
        project__workspace=task.project.workspace,
        backend=Backend.EXTERNAL.value,
        leased_at__isnull=False,
        seat__in=[Seat.EXECUTOR.value, Seat.FIXER.value],
    )
    return rows.exclude(seat=Seat.FIXER.value, input__mode="propose").exists()


def is_planned_by_agent(task: Task) -> bool:
    """Whether an agent wrote the plan that a step stands in, or put the step into it."""
    if task.blueprint_id is None:
        return False
    added = Deviation.objects.filter(
        blueprint=task.blueprint_id, new_step__id=task.step_key, actor__startswith="agent:"
    )
    planned = Blueprint.objects.filter(
        pk=task.blueprint_id, plan__backend=Backend.EXTERNAL.value, plan__is_trusted=False
    )
    return planned.exists() or added.exists()
