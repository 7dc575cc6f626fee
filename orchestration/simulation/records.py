"""Read back what the loop decided, verdict by verdict, and hold it against the oracle.

The order of the verdicts is the engine's, for agents work side by side; whether each was right, and
what had to follow from it, is the oracle's.
Source: seed 002 ("EVALUATION"), DESIGN section 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestration.models import Assignment, AuditEvent, ControlCommand, Project, Task
from orchestration.selectors.tasks import master_list, master_status
from orchestration.services.prompts import build_prompt
from orchestration.simulation.cast import BASE_URL
from orchestration.simulation.oracle import (
    FAILED,
    IN_PROGRESS,
    PENDING,
    TERMINATE,
    Expected,
    Oracle,
)
from orchestration.simulation.score import Score
from orchestration.simulation.script import Fault, RootScript, Trouble, Verdict
from orchestration.states import Seat

JUDGED = ("task.done", "task.failed")
CLASSES = {
    Fault.REPORTED: "agent_failed",
    Fault.SILENT: "lease_expired",
    Fault.OVERTIME: "timeout",
    Fault.CONTRADICTORY: "check_failed",
}
"""How the failure packages name what the script did."""
WHOLE_LIST_EVERY = 100
"""Verdicts between two looks at the whole list; the roots concerned are looked at each time."""


class Watcher:
    """Looks after each act, so that what is measured is what stood there then."""

    def __init__(self, project: Project, oracle: Oracle) -> None:
        self.project, self.oracle, self._score = project, oracle, Score()
        self.broken: list[str] = []
        self._event, self._command, self._verdicts = 0, 0, 0
        self._keys: dict[int, str] = {}
        self._decided: list[tuple[str, Expected | None]] = []

    def score(self) -> Score:
        """Look at the whole list once more, and for commands nobody expected; give the score."""
        self._check_list()
        rows = ControlCommand.objects.filter(project=self.project, pk__gt=self._command)
        for command in rows.order_by("pk"):
            name = self._key(command.task_id)
            self._score.commands.check(f"{name}: {command.next_action} without a verdict")
        return self._score

    def look(self) -> None:
        """Judge the verdicts that came since the last look."""
        rows = AuditEvent.objects.filter(
            project=self.project, pk__gt=self._event, kind__in=JUDGED, task__parent__isnull=True
        ).exclude(before__status=("fatal"))
        seen = list(rows.order_by("pk").values_list("pk", "task_id", "kind"))
        for pk, task_id, kind in seen:
            self._event = pk
            self._judged(self._key(task_id), task_id, is_go=kind == "task.done")
        if seen:
            self._check_rows([task_id for _, task_id, _ in seen])

    def decided(self, key: str, verdict: Verdict) -> None:
        """Sir decided about a fatal root: tell the oracle, and look at the command of a waiver."""
        expected = self.oracle.decide(key)
        if expected is not None:
            self._check_command(key, expected, self._next_command(key))
        for state, task in (("waived", Verdict.WAIVE), ("cancelled", Verdict.ABORT)):
            if verdict is task:
                self._check_rows(self._ids([key]), told=f"{key} {state}")

    def planning(self, held: Assignment, root: RootScript, path: str) -> None:
        """A planner took work: it must have been told every failure of the root so far."""
        causes = self.oracle.causes(root.key)
        if not causes or path:
            return
        told = [one for one in held.input["failures"] if one.get("class") != "guidance"]
        prompt = build_prompt(
            task=held.task, seat=Seat.PLANNER, assignment=held, base_url=BASE_URL, agent=held.agent
        ).text
        problem = _missing(causes, told, prompt)
        self._score.contexts.check(f"{root.key}: {problem}" if problem else "")

    def _judged(self, key: str, task_id: int, *, is_go: bool) -> None:
        expected = self.oracle.judge(key)
        self._verdicts += 1
        if expected.is_go != is_go:
            said = "GO" if is_go else "NO-GO"
            self._score.commands.check(f"{key}: {said}, scripted was the opposite")
            return
        command = self._next_command(key) if expected.action is not None else None
        self._check_command(key, expected, command)
        if not is_go:
            self._check_context(key, task_id, expected, command)
        if self._verdicts % WHOLE_LIST_EVERY == 0:
            self._check_list()

    def _next_command(self, key: str) -> ControlCommand | None:
        """Read the command that followed: the next one of all, or it is not its command."""
        rows = ControlCommand.objects.filter(project=self.project, pk__gt=self._command)
        command = rows.order_by("pk").first()
        if command is None:
            return None
        self._command = command.pk
        if self._key(command.task_id) != key:
            self.broken.append(f"a command about {self._key(command.task_id)} came for {key}")
            return None
        return command

    def _check_command(self, key: str, expected: Expected, command: ControlCommand | None) -> None:
        if expected.action is None:
            return
        problem = _command_problem(key, expected, command) or self._report_problem(command)
        self._score.commands.check(problem)
        if command is None:
            return
        listed: Mapping[str, Mapping[str, str]] = command.master_list_after
        wrong = [
            f"{name}: {listed.get(name, {}).get('status')} and not {state}"
            for name, state in expected.changed.items()
            if listed.get(name, {}).get("status") != state
        ]
        self._score.states.check(f"after {key}: {'; '.join(wrong)}" if wrong else "")

    def _report_problem(self, command: ControlCommand | None) -> str:
        """Only the end has a report, and it names what Sir waived and what was given up."""
        is_end = command is not None and command.next_action == TERMINATE
        report = str(command.final_report or "") if command is not None else ""
        if bool(report) != is_end:
            return "a report without an end" if report else "the end has no report"
        left_out = [one for one in self.oracle.excepted() if is_end and f"`{one}`" not in report]
        return f"the report does not name {left_out[:3]}" if left_out else ""

    def _check_context(
        self, key: str, task_id: int, expected: Expected, command: ControlCommand | None
    ) -> None:
        """The failure must stand in the command, and on the root for whoever tries next."""
        if expected.cause is None:
            return
        context = Task.objects.values_list("failure_context", flat=True).get(pk=task_id)
        told = [one for one in context if one.get("class") != "guidance"]
        problem = _missing(self.oracle.causes(key), told, "")
        if command is not None and not problem:
            stored = (command.context_for_step_2 or {}).get("failure_context") or {}
            if not stored.get("evidence_link") or stored.get("failed_task") != key:
                problem = "the command names no task or no evidence"
            elif expected.cause.said not in str(stored.get("root_cause")):
                problem = f"the command says {stored.get('root_cause')!r}"
        self._score.contexts.check(f"{key}: {problem}" if problem else "")

    def _check_rows(self, ids: Sequence[int], *, told: str = "") -> None:
        """Hold what the list says of the roots concerned against the oracle."""
        for task in Task.objects.filter(pk__in=ids).order_by("pk"):
            self._check_state(task.external_key, master_status(task), told)

    def _check_list(self) -> None:
        for name, entry in master_list(self.project).items():
            self._check_state(name, str(entry["status"]), "the whole list")

    def _check_state(self, name: str, shown: str, told: str) -> None:
        state = self.oracle.state[name]
        root = self.oracle.script.roots[name]
        right = {state}
        if not root.is_planned and state in (PENDING, IN_PROGRESS):
            # Who claims small work, and when, is not the loop's to say.
            right = {IN_PROGRESS, FAILED if self.oracle.in_a_row[name] else PENDING}
        problem = f"{name} is {shown} and not {state} {told}".rstrip()
        self._score.states.check("" if shown in right else problem)

    def _ids(self, keys: Sequence[str]) -> list[int]:
        rows = Task.objects.filter(project=self.project, external_key__in=keys)
        return list(rows.values_list("pk", flat=True))

    def _key(self, task_id: int) -> str:
        if task_id not in self._keys:
            row = Task.objects.values_list("external_key", flat=True).get(pk=task_id)
            self._keys[task_id] = row
        return self._keys[task_id]


def _command_problem(key: str, expected: Expected, command: ControlCommand | None) -> str:
    if command is None:
        return f"{key}: no command, {expected.action} was right"
    if command.next_action != expected.action:
        return f"{key}: {command.next_action}, {expected.action} was right"
    context = command.context_for_step_2 or {}
    named = context.get("task_to_process")
    if expected.tasks and named not in expected.tasks:
        return f"{key}: {command.next_action} names {named} and not {sorted(expected.tasks)[:3]}"
    return ""


def _missing(causes: Sequence[Trouble], told: Sequence[Mapping[str, object]], prompt: str) -> str:
    """Say which failure is not told, not in its order, or without its words."""
    if len(told) != len(causes):
        return f"{len(told)} failures are told of {len(causes)}"
    for cause, one in zip(causes, told, strict=True):
        if one.get("class") != CLASSES[cause.fault]:
            return f"a failure {cause.fault} is told as {one.get('class')}"
        if cause.said not in str(one.get("root_cause")) or not one.get("root_cause"):
            return f"{cause.said!r} is told as {one.get('root_cause')!r}"
        if prompt and cause.said not in prompt:
            return f"the prompt does not say {cause.said!r}"
    return ""
