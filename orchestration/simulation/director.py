"""Play a script through the engine: agents that fail, die, dawdle and contradict, and Sir.

One act after the other, so that the same seed gives the same run. Time is moved by moving the
stored times, never by waiting.
Source: seed 002, DESIGN sections 3, 4 and 10.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from orchestration.models import Assignment, Decision, Project, Task
from orchestration.services.decisions import Verdict as GivenVerdict
from orchestration.services.decisions import decide_decision
from orchestration.services.lease_sweeps import end_overdue_assignments, reclaim_expired_leases
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.simulation.cast import (
    MALFORMED,
    TOO_LONG,
    Broken,
    Player,
    claim_of,
    finished,
    plan_of,
)
from orchestration.simulation.crew import Crew
from orchestration.simulation.script import (
    Fault,
    ProjectScript,
    RootScript,
    StepScript,
    Trouble,
    Verdict,
)
from orchestration.states import (
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    Seat,
    TaskStatus,
)

SWEEP_EVERY = 40
"""Acts between two full sweeps; the engine's own beat does one every few seconds."""
IDLE_ROUNDS = 3


@dataclass(slots=True)
class Held:
    """Work that an agent holds until something happens: Sir's answer, or its children's end."""

    player: Player
    held: Assignment
    root: RootScript
    step: StepScript


@dataclass(slots=True)
class Director:
    """Plays one script in one project. Shape: `acts` counts what was done."""

    script: ProjectScript
    project: Project
    planner: Player
    fixer: Player
    executors: list[Player]
    sir: User
    crew: Crew
    after_act: Callable[[], None]
    on_plan: Callable[[Assignment, RootScript, str], None]
    on_sir: Callable[[str, Verdict], None]
    chance: random.Random = field(default_factory=random.Random)
    acts: int = 0
    _queues: dict[tuple[str, str], list[Trouble]] = field(default_factory=dict)
    _waiting: list[Held] = field(default_factory=list)
    _bad_plans: dict[str, int] = field(default_factory=dict)
    _dead: set[tuple[str, str]] = field(default_factory=set)
    _keys: dict[int, str] = field(default_factory=dict)

    def play(self) -> None:
        """Act until nothing moves any more. Errors: Broken."""
        self.chance.seed(f"director {self.script.seed}")
        idle = 0
        while idle < IDLE_ROUNDS:
            moved = self._round()
            idle = 0 if moved else idle + 1
            if not moved:
                sweep()
                self.crew.drive()
                self.after_act()

    def _round(self) -> bool:
        parts: list[Callable[[], bool]] = [
            self._plan, self._fix, self._answer, self._go_on,
            *[self._executor(one) for one in self.executors],
        ]  # fmt: skip
        self.chance.shuffle(parts)
        moved = False
        for part in parts:
            if part():
                moved = True
                self.acts += 1
                self.crew.drive()
                self.after_act()
                if self.acts % SWEEP_EVERY == 0:
                    sweep()
                    self.crew.drive()
                    self.after_act()
        return moved

    # Where in the script a piece of work is.

    def _place(self, held: Assignment) -> tuple[RootScript, str]:
        task = held.task
        root = self.script.roots[self._key(task.root_id or task.pk)]
        return root, self._path(task)

    def _key(self, root_id: int) -> str:
        if root_id not in self._keys:
            self._keys[root_id] = Task.objects.values_list("external_key", flat=True).get(
                pk=root_id
            )
        return self._keys[root_id]

    def _path(self, task: Task) -> str:
        if task.parent_id is None or task.is_spawned:
            return ""
        if task.parent_id == task.root_id:
            return task.step_key
        above = Task.objects.get(pk=task.parent_id)
        return f"{self._path(above)}/{task.step_key}"

    # The seats.

    def _plan(self) -> bool:
        held = self.planner.claim(Seat.PLANNER)
        if held is None:
            return False
        root, path = self._place(held)
        self.on_plan(held, root, path)
        if self._bad_plans.get(root.key, 0) < root.bad_plans:
            self._bad_plans[root.key] = self._bad_plans.get(root.key, 0) + 1
            if not self.planner.submit(held, MALFORMED).faults:
                raise Broken(f"a plan in a circle was accepted for {root.key}")
            return True
        self.planner.submit(held, plan_of(root, path))
        return True

    def _fix(self) -> bool:
        held = self.fixer.claim(Seat.FIXER)
        if held is None:
            return False
        root, path = self._place(held)
        self.fixer.record_call(held, "pytest", 0)
        result = finished(held, root.steps[path], claims=[claim_of("all tests pass")])
        self.fixer.submit(held, {**result, "change_note": "made the tests pass"})
        return True

    def _executor(self, player: Player) -> Callable[[], bool]:
        def act() -> bool:
            held = player.claim(Seat.EXECUTOR)
            if held is None:
                return False
            root, path = self._place(held)
            if held.task.is_spawned:
                player.submit(held, finished(held, StepScript("")))
                return True
            self._perform(Held(player, held, root, root.steps[path]))
            return True

        return act

    def _go_on(self) -> bool:
        """Let those go on who waited for Sir or for their children; drop what they lost."""
        for one in list(self._waiting):
            row = Assignment.objects.select_related("task__project").get(pk=one.held.pk)
            if row.status != AssignmentStatus.LEASED or row.token != one.held.token:
                self._waiting.remove(one)
                continue
            if row.task.status != TaskStatus.WORKING or _has_open_children(row.task):
                continue
            self._waiting.remove(one)
            one.held.task = row.task
            self._perform(one)
            return True
        return False

    # What an executor does with a step.

    def _perform(self, one: Held) -> None:
        queue = self._queue(one)
        if not queue:
            self._hand_in(one)
            return
        trouble = queue[0]
        if trouble.fault is Fault.SILENT and one.held.task.status == TaskStatus.WORKING:
            # Whoever showed a sign of life counts as slow: somebody else takes it and is silent.
            one.player.release(one.held)
            return
        queue.pop(0)
        PERFORM[trouble.fault](self, one, trouble)

    def _queue(self, one: Held) -> list[Trouble]:
        where = (one.root.key, one.step.key)
        return self._queues.setdefault(where, list(one.step.troubles))

    def _hand_in(self, one: Held) -> None:
        task = one.held.task
        if task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
            one.held.task = Task.objects.select_related("project").get(pk=task.pk)
        if one.root.children and not one.held.task.children.exists():
            for number in range(1, one.root.children + 1):
                one.player.spawn(one.held, number)
            self._waiting.append(one)
            return
        claims = []
        if one.step.is_refuted:
            one.player.record_call(one.held, "pytest", 1)
            claims = [claim_of("all tests pass")]
        where = (one.root.key, one.step.key)
        one.player.submit(one.held, finished(one.held, one.step, claims=claims))
        if one.step.worker_dies and where not in self._dead:
            self._dead.add(where)
            self.crew.die_at_work(self.project)

    def reported(self, one: Held, trouble: Trouble) -> None:
        """Say that it failed."""
        one.player.submit(one.held, {"status": "failed", "detail": trouble.said})

    def silent(self, one: Held, trouble: Trouble) -> None:
        """Never answer; wake up too late, and be refused."""
        expire(one.held)
        reclaim_expired_leases()
        one.player.require_refused(one.held, finished(one.held, one.step), "lease_lost")

    def overtime(self, one: Held, trouble: Trouble) -> None:
        """Go on beyond the time that the task has."""
        if one.held.task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
        one.player.breathe(one.held)
        Assignment.objects.filter(pk=one.held.pk).update(deadline=_before_now())
        end_overdue_assignments()

    def contradictory(self, one: Held, trouble: Trouble) -> None:
        """Hand in for review what it says itself has failed."""
        claims = [claim_of(trouble.said)]
        one.player.submit(one.held, finished(one.held, one.step, claims=claims))

    def slow(self, one: Held, trouble: Trouble) -> None:
        """Show progress, and then be overtaken by the clock."""
        if one.held.task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
        one.player.breathe(one.held)
        expire(one.held)
        reclaim_expired_leases()

    def released(self, one: Held, trouble: Trouble) -> None:
        """Give it back."""
        one.player.release(one.held)

    def bad_handoff(self, one: Held, trouble: Trouble) -> None:
        """Hand over too much, then nothing, and then go on as it should be."""
        if one.held.task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
            one.held.task.status = TaskStatus.WORKING.value
        good = finished(one.held, one.step)
        one.player.require_refused(one.held, {**good, "comment": TOO_LONG}, "handoff_invalid")
        one.player.require_refused(one.held, {**good, "comment": None}, "missing_handoff")
        self._perform(one)

    def question(self, one: Held, trouble: Trouble) -> None:
        """Ask Sir, and wait for him."""
        if one.held.task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
        one.player.report(one.held, "waiting_human", detail=trouble.said)
        expire(one.held)
        reclaim_expired_leases()
        self._waiting.append(one)

    def blocked(self, one: Held, trouble: Trouble) -> None:
        """Be blocked by nothing that would clear by itself."""
        if one.held.task.status == TaskStatus.CLAIMED:
            one.player.begin(one.held)
        one.player.report(one.held, "blocked", detail=trouble.said)

    # Sir.

    def _answer(self) -> bool:
        rows = Decision.objects.filter(project=self.project, status=DecisionStatus.OPEN.value)
        decision = rows.select_related("task").order_by("pk").first()
        if decision is None:
            return False
        kind = DecisionKind(decision.kind)
        if kind is DecisionKind.MAX_RETRIES:
            self._decide_fatal(decision)
        elif kind in ANSWERS:
            self._decide(decision, ANSWERS[kind])
        else:
            raise Broken(f"nobody scripted a {kind} about {decision.task}: {decision.question}")
        return True

    def _decide_fatal(self, decision: Decision) -> None:
        task = decision.task
        key = task.external_key if task is not None else ""
        verdict = self.script.roots[key].sir if key in self.script.roots else None
        if verdict is None or task is None:
            raise Broken(f"{key or decision} was not to fail three times in a row")
        if verdict is Verdict.ABORT:
            self._cancel_behind(key)
        self._decide(decision, verdict.value, text=f"{task.description}, amended")
        self.on_sir(key, verdict)

    def _cancel_behind(self, key: str) -> None:
        """What waits for a cancelled root waits for ever: Sir cancels it too."""
        keys = self.script.behind(key)
        rows = Task.objects.filter(project=self.project, parent__isnull=True)
        open_ones = rows.filter(external_key__in=keys).exclude(status__in=("done", "cancelled"))
        for pk in list(open_ones.order_by("pk").values_list("pk", flat=True)):
            cancel_task(task_id=pk, actor=self._sir_acts(), reason=f"{key} was given up")

    def _decide(self, decision: Decision, verdict: str, *, text: str = "") -> None:
        payloads: dict[str, dict[str, Any]] = {
            "amend": {"text": text},
            "waive": {"release_dependents": True},
        }
        given = GivenVerdict(
            verdict, decision.version, decision.digest, "as scripted",
            payloads.get(verdict),
        )  # fmt: skip
        decide_decision(
            decision_id=decision.pk, verdict=given, actor=self._sir_acts(), user_id=self.sir.pk
        )

    def _sir_acts(self) -> Actor:
        return Actor(f"human:{self.sir.get_username()}")


PERFORM: dict[Fault, Callable[[Director, Held, Trouble], None]] = {
    Fault.REPORTED: Director.reported,
    Fault.SILENT: Director.silent,
    Fault.OVERTIME: Director.overtime,
    Fault.CONTRADICTORY: Director.contradictory,
    Fault.SLOW: Director.slow,
    Fault.RELEASED: Director.released,
    Fault.BAD_HANDOFF: Director.bad_handoff,
    Fault.QUESTION: Director.question,
    Fault.BLOCKED: Director.blocked,
}
ANSWERS = {
    DecisionKind.WAITING_HUMAN: "answer",
    DecisionKind.CLARIFICATION: "confirmed",
    DecisionKind.HIGH_NOTICE: "acknowledge",
}
"""What Sir says to what is no failure."""


def expire(held: Assignment) -> None:
    """Let a lease run out, by moving its stored time."""
    Assignment.objects.filter(pk=held.pk).update(lease_expires_at=_before_now())


def _before_now() -> object:
    return timezone.now() - timedelta(seconds=1)


def _has_open_children(task: Task) -> bool:
    rows = task.children.filter(blueprint__isnull=True, is_superseded=False)
    return rows.exclude(status__in=("done", "cancelled", "failed")).exists()
