"""Spawn a child below the task that an agent works on.

Depth comes from the server, the matrix of profiles binds, and each child is strictly smaller than
what it comes from; it passes S0 and S1 like anything else. A child is executed as it is: one that
scores as complex takes the light plan.
Source: DESIGN section 11 ("Recursion"), section 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestration.errors import Fault, Forbidden, IllegalTransition, Invalid, NotFound
from orchestration.models import Agent, Project, Task
from orchestration.rules.profiles import known_roles, may_spawn
from orchestration.rules.scope import folded_words, proper_subset
from orchestration.services.blueprints import take_numbers
from orchestration.services.intake import require_text, title_of
from orchestration.services.lookups import lock_project
from orchestration.services.readiness import make_ready
from orchestration.services.red_line_refusals import require_not_refused
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import held_lease, lock_with_parent
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import Complexity, TaskStatus


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child as its spawner describes it. Shape: `scope` and `estimated_steps` may be left out.

    `hint` is the least complexity that its spawner wants it to be treated as.
    """

    text: str
    title: str = ""
    role: str = ""
    scope: tuple[str, ...] = ()
    estimated_steps: int | None = None
    hint: Complexity | None = None


@retry_on_deadlock
def spawn_task(
    *, task_id: int, child: NewChild, agent: Agent, actor: Actor, lease_token: str = ""
) -> Task:
    """Create a child of the task that an agent works on, and offer it.

    Errors: LeaseLost; IllegalTransition unless the task is working; Forbidden beyond depth, width
    or matrix; Invalid for an unknown role and for a child that is not smaller, with every fault;
    Conflict for a red line that Sir refused in this lineage.
    Locks: project (for the number), parent, task.
    """
    with unit_of_work(actor) as work:
        return spawn_within(work, task_id, child, agent, lease_token=lease_token)


def spawn_within(
    work: Work, task_id: int, child: NewChild, agent: Agent, *, lease_token: str = ""
) -> Task:
    """Spawn a child inside the caller's transaction, as `spawn_task` does.

    Errors, Locks: as `spawn_task`.
    """
    text = require_text(child.text or child.title)
    project_id = Task.objects.filter(pk=task_id).values_list("project_id", flat=True).first()
    if project_id is None:
        raise NotFound("There is no such task.")
    project = lock_project(project_id)
    task = lock_with_parent(task_id)
    task.project = project
    held_lease(task, agent, lease_token)
    if task.status != TaskStatus.WORKING:
        raise IllegalTransition(
            f"only a working task spawns; this one is {task.status}",
            allowed=[TaskStatus.WORKING.value] if task.status == TaskStatus.CLAIMED else [],
            current=task.status,
        )
    _require_place(task, child)
    _require_smaller(task, child, text)
    require_not_refused(task, [_title(child, text), text])
    return _spawn(work, project, task, child, text)


def _require_place(task: Task, child: NewChild) -> None:
    """Raise beyond depth, width or matrix. Errors: Forbidden; Invalid for an unknown role."""
    policy = task.project.policy
    if child.role and child.role not in known_roles():
        known = f"must be one of {', '.join(sorted(known_roles()))}"
        raise Invalid(f"role: {known}.", errors=[Fault(path="role", message=known)])
    if task.depth >= policy.limits.depth:
        raise Forbidden(
            f"Nothing is spawned below depth {policy.limits.depth}.",
            code="spawn_depth", depth=task.depth,
        )  # fmt: skip
    if task.children.filter(is_superseded=False).count() >= policy.limits.children:
        raise Forbidden(
            f"A task has at most {policy.limits.children} children.", code="spawn_width"
        )
    may = may_spawn(
        task.role or None,
        child.role or None,
        subcoding_may_spawn=policy.workflow.subcoding_may_spawn,
    )
    if not may:
        said = f"{task.role or 'a task without a role'} may not spawn {child.role or 'one'}"
        raise Forbidden(f"By the matrix of profiles {said}.", code="spawn_matrix")


def _require_smaller(task: Task, child: NewChild, text: str) -> None:
    """Raise unless a child is strictly smaller than what it comes from.

    Errors: Invalid listing every fault.
    """
    faults: list[Fault] = []
    told = {folded_words(text), folded_words(f"{child.title} {text}")}
    for above in _upwards(task):
        known = {folded_words(above.title), folded_words(above.description)} - {""}
        if told & known:
            message = "is the text of a task above it"
            faults.append(Fault(path="description", message=message))
            break
    if child.scope and not proper_subset(child.scope, task.scope):
        faults.append(Fault(path="scope", message="must be smaller than the scope of its task"))
    estimated = task.estimated_steps
    if child.estimated_steps is not None and estimated and child.estimated_steps >= estimated:
        message = f"must be below the {estimated} of its task"
        faults.append(Fault(path="estimated_steps", message=message))
    if faults:
        raise Invalid("A child is smaller than its task.", code="not_smaller", errors=faults)


def _upwards(task: Task) -> Sequence[Task]:
    """List a task and everything above it."""
    rows, above = [task], task.parent
    while above is not None:
        rows.append(above)
        above = above.parent
    return rows


def _title(child: NewChild, text: str) -> str:
    return (child.title or title_of(text))[:300]


def _spawn(work: Work, project: Project, task: Task, child: NewChild, text: str) -> Task:
    number = take_numbers(project, 1)[0]
    made = Task.objects.create(
        project=project,
        number=number,
        parent=task,
        root=task.root or task,
        step_key=f"s{task.children.filter(blueprint__isnull=True).count() + 1}",
        title=_title(child, text),
        description=text,
        depth=task.depth + 1,
        phase=task.open_phase,
        rank=number,
        role=child.role,
        scope=list(child.scope),
        estimated_steps=child.estimated_steps,
        complexity=child.hint.value if child.hint is not None else "",
        created_at=work.now,
        updated_at=work.now,
    )
    _record_spawned(work, made, child.hint)
    for topic in (f"project:{project.pk}", f"task:{task.pk}"):
        work.hint(topic, project.pk)
    made.parent = task
    make_ready(work, [made])
    return made


def _record_spawned(work: Work, made: Task, hint: Complexity | None) -> None:
    after: dict[str, object] = {
        "status": TaskStatus.PENDING.value,
        "parent": made.parent_id,
        "step": made.step_key,
        "depth": made.depth,
        "title": made.title,
        "number": made.number,
        "phase": made.phase,
    }
    if hint is not None:
        after["complexity_hint"] = hint.value
    work.record(
        "task.pending",
        subject=f"task:{made.pk}",
        project_id=made.project_id,
        task_id=made.pk,
        after=after,
        why="spawned",
    )
