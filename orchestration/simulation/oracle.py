"""What must follow from what was scripted: a small model of the loop that shares no code with it.

Fed with one verdict after the other it says which control command is right, what the master list
must show, and which failures the next planner must be told. It knows the script and the source
documents only.
Source: seed 002 ("Phase 2" to "Phase 4", examples, exceptions), DESIGN section 10, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestration.simulation.script import (
    MAX_RETRIES,
    Kind,
    ProjectScript,
    RootScript,
    Trouble,
    Verdict,
)

PENDING, IN_PROGRESS, COMPLETED = "PENDING", "IN_PROGRESS", "COMPLETED"
FAILED, CANCELLED = "FAILED", "CANCELLED"
FATAL = "FATAL_ERROR: MAX_RETRIES_EXCEEDED"
RESTART, PROCEED = "RESTART_FROM_STEP_2", "PROCEED_TO_NEXT_TASK"
TERMINATE, SUSPEND = "TERMINATE_SUCCESS", "SUSPEND_FOR_HUMAN"
WITHOUT_COMMAND = frozenset({Kind.DIRECT, Kind.SPAWNING})
"""Small work is outside the loop: it is judged, but no command is about its verdict.

The end is commanded all the same where it is the last to end."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must follow from one verdict.

    Shape: `action` None where no command is issued; `tasks` the roots it may name; `cause` of a
    failed attempt; `changed` what the list shows for the root judged and the one that starts.
    """

    is_go: bool
    action: str | None
    changed: dict[str, str]
    tasks: frozenset[str] = frozenset()
    cause: Trouble | None = None


@dataclass(slots=True)
class Oracle:
    """The state of the model. Shape: `causes` every failure of a root so far, oldest first."""

    script: ProjectScript
    state: dict[str, str] = field(default_factory=dict)
    in_a_row: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = dict.fromkeys(self.script.roots, PENDING)
        self.in_a_row = dict.fromkeys(self.script.roots, 0)
        self.failed = dict.fromkeys(self.script.roots, 0)
        self._start_next()

    def judge(self, key: str) -> Expected:
        """Say what must follow from the next verdict on a root, and go there."""
        root = self.script.roots[key]
        if self.failed[key] < len(root.failures):
            return self._no_go(root)
        return self._go(root)

    def causes(self, key: str) -> Sequence[Trouble]:
        """List the failures of a root so far."""
        return self.script.roots[key].failures[: self.failed[key]]

    def decide(self, key: str) -> Expected | None:
        """Let Sir decide about a root that failed three times in a row.

        A waiver goes on like a success, so a command must follow from it; so it must where giving
        up the last one ends the project.
        """
        verdict = self.script.roots[key].sir
        if verdict is None or self.state[key] != FATAL:
            raise AssertionError(f"nobody was to decide about {key}: {self.state[key]}")
        if verdict is Verdict.ABORT:
            for one in (key, *self.script.behind(key)):
                if self.state[one] != COMPLETED:
                    self.state[one] = CANCELLED
            if self._is_terminated():
                return Expected(is_go=False, action=TERMINATE, changed={key: CANCELLED})
        elif verdict is Verdict.WAIVE:
            self.in_a_row[key] = 0
            return self._go(self.script.roots[key])
        else:
            # Planned again before anything else is begun, as after any failure.
            self.in_a_row[key] = 0
            self.state[key] = IN_PROGRESS if self.script.roots[key].is_planned else PENDING
        self._start_next()
        return None

    def excepted(self) -> list[str]:
        """Name the roots that the final report must list: waived by Sir, or given up."""
        return [
            key for key, root in self.script.roots.items()
            if self.state[key] == CANCELLED
            or (self.state[key] == COMPLETED and root.sir is Verdict.WAIVE)
        ]  # fmt: skip

    def is_over(self) -> bool:
        """Whether every root has ended."""
        return all(state in (COMPLETED, CANCELLED) for state in self.state.values())

    def _no_go(self, root: RootScript) -> Expected:
        cause = root.failures[self.failed[root.key]]
        self.failed[root.key] += 1
        self.in_a_row[root.key] += 1
        if self.in_a_row[root.key] >= MAX_RETRIES:
            self.state[root.key] = FATAL
            action: str | None = SUSPEND
        else:
            self.state[root.key] = FAILED
            action = RESTART
        changed = {root.key: self.state[root.key]}
        if action == RESTART:
            # It is planned again before anything else is begun.
            self.state[root.key] = IN_PROGRESS if root.is_planned else PENDING
        if root.kind in WITHOUT_COMMAND:
            action = None
        return Expected(
            is_go=False, action=action, changed=changed, tasks=frozenset({root.key}), cause=cause
        )  # fmt: skip

    def _go(self, root: RootScript) -> Expected:
        self.in_a_row[root.key] = 0
        self.state[root.key] = COMPLETED
        started = self._start_next()
        changed = {root.key: COMPLETED} | ({started: IN_PROGRESS} if started else {})
        if self._is_terminated():
            return Expected(is_go=True, action=TERMINATE, changed=changed)
        if root.kind in WITHOUT_COMMAND:
            return Expected(is_go=True, action=None, changed=changed)
        following = frozenset({started}) if started else self._open()
        if following:
            return Expected(is_go=True, action=PROCEED, changed=changed, tasks=following)
        return Expected(is_go=True, action=SUSPEND, changed=changed)

    def _is_terminated(self) -> bool:
        """Whether every root has ended, and the loop has something done."""
        roots = self.script.roots.values()
        return self.is_over() and any(
            self.state[one.key] == COMPLETED and one.kind not in WITHOUT_COMMAND for one in roots
        )

    def _start_next(self) -> str | None:
        """Start the planned root whose turn it is: one at a time, by rank, behind GO only."""
        planned = [one for one in self.script.roots.values() if one.is_planned]
        if any(self.state[one.key] in (IN_PROGRESS, FATAL) for one in planned):
            return None
        for one in sorted(planned, key=lambda root: root.rank):
            if self.state[one.key] == PENDING and self._is_free(one):
                self.state[one.key] = IN_PROGRESS
                return one.key
        return None

    def _open(self) -> frozenset[str]:
        """Name the roots that are not done and wait for nothing."""
        open_ones = (PENDING, IN_PROGRESS)
        roots = self.script.roots.values()
        return frozenset(
            one.key for one in roots if self.state[one.key] in open_ones and self._is_free(one)
        )

    def _is_free(self, root: RootScript) -> bool:
        return all(self.state[one] == COMPLETED for one in root.after)
