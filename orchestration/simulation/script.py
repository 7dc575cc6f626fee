"""What will happen in a simulated project: every root, step, fault and verdict, from one seed.

Pure: it knows nothing of the engine, so that what the engine makes of it can be judged.
Source: seed 002 (examples, evaluation), seed 000 (S0 to S3, recursion).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

MAX_RETRIES = 3
"""The failed attempt in a row that ends the automatic retries (seed 002, N = 3)."""
TRIES = 2
"""Tries of one step in one attempt of its root."""
FAR_BACK = 12
"""How far back in the list a dependency may lie."""


class Kind(StrEnum):
    """How a root is done. `nested` plans one of its steps again, `spawning` makes children."""

    THREE_STEP = "three_step"
    NESTED = "nested"
    LIGHT = "light"
    DIRECT = "direct"
    SPAWNING = "spawning"


PLANNED = frozenset({Kind.THREE_STEP, Kind.NESTED})


class Fault(StrEnum):
    """What goes wrong while a step is done."""

    REPORTED = "reported"
    SILENT = "silent"
    OVERTIME = "overtime"
    CONTRADICTORY = "contradictory"
    SLOW = "slow"
    RELEASED = "released"
    BAD_HANDOFF = "bad_handoff"
    QUESTION = "question"
    BLOCKED = "blocked"


COUNTS = frozenset({Fault.REPORTED, Fault.SILENT, Fault.OVERTIME, Fault.CONTRADICTORY})
"""Faults that use up a try; the others count nothing."""


class Verdict(StrEnum):
    """What Sir says to a root that failed three times in a row."""

    RETRY = "retry"
    AMEND = "amend"
    WAIVE = "waive"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One fault of one step. `said` is the agent's own words where it says any."""

    fault: Fault
    said: str = ""

    @property
    def counts(self) -> bool:
        """Whether it uses up a try."""
        return self.fault in COUNTS


@dataclass(frozen=True, slots=True)
class StepScript:
    """A step of a plan: what it waits for, and what goes wrong with it, in order.

    At last it is handed in: as a file where it `writes_file`, with a claim that its own record
    refutes where it `is_refuted` (a fixer puts that right), and with a worker of ours that dies
    over the check where the `worker_dies`.
    """

    key: str
    after: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    writes_file: bool = False
    is_refuted: bool = False
    worker_dies: bool = False


@dataclass(frozen=True, slots=True)
class RootScript:
    """A root of the master list.

    Shape: `steps` by path; a root that is not planned has the one path "". `failures` are the
    faults that end each failed attempt, oldest first. `sir` is his verdict once the third in a row
    is reached. `bad_plans` malformed plans come before a good one.
    """

    key: str
    rank: int
    kind: Kind
    after: tuple[str, ...]
    steps: Mapping[str, StepScript]
    failures: tuple[Trouble, ...]
    sir: Verdict | None
    bad_plans: int = 0
    children: int = 0

    @property
    def is_planned(self) -> bool:
        """Whether it goes through plan and audit."""
        return self.kind in PLANNED

    @property
    def ends(self) -> str:
        """How it ends: done, waived or cancelled."""
        if self.sir is Verdict.ABORT:
            return "cancelled"
        return "waived" if self.sir is Verdict.WAIVE else "done"


@dataclass(frozen=True, slots=True)
class Rates:
    """How often each thing goes wrong. Shape: chances between 0 and 1, a step or an attempt."""

    fail: float = 0.2
    slow: float = 0.05
    timeouts: float = 0.05
    contradictions: float = 0.05
    kill_workers: float = 0.05
    handoffs: float = 0.05
    questions: float = 0.05


@dataclass(frozen=True, slots=True)
class ProjectScript:
    """The whole project: its roots in the order of their rank."""

    seed: int
    roots: Mapping[str, RootScript]

    def behind(self, key: str) -> list[str]:
        """List the roots that wait for one, however far, in order."""
        gone = {key}
        for root in self.roots.values():
            if gone & set(root.after):
                gone.add(root.key)
        return [one for one in self.roots if one in gone and one != key]


def write_script(tasks: int, seed: int, rates: Rates) -> ProjectScript:
    """Write a project of so many roots; the same arguments give the same project."""
    chance = random.Random(f"countersign {seed} {tasks} {rates}")  # noqa: S311  # a script, no secret
    roots: dict[str, RootScript] = {}
    for number in range(1, tasks + 1):
        root = _write_root(chance, number, list(roots.values()), rates)
        roots[root.key] = root
    return ProjectScript(seed, roots)


def _write_root(
    chance: random.Random, number: int, earlier: Sequence[RootScript], rates: Rates
) -> RootScript:
    key = f"root-{number:05d}"
    kind = chance.choices(
        (Kind.THREE_STEP, Kind.NESTED, Kind.LIGHT, Kind.DIRECT, Kind.SPAWNING), (40, 6, 18, 30, 6)
    )[0]
    near = [one.key for one in earlier[-FAR_BACK:]]
    after = chance.sample(near, min(len(near), chance.choice((0, 0, 0, 1, 1, 2))))
    failures, sir = _write_failures(chance, key, kind, rates)
    steps = _write_steps(chance, key, kind, failures, rates)
    return RootScript(
        key=key,
        rank=number,
        kind=kind,
        after=tuple(sorted(after)),
        steps=steps,
        failures=tuple(failures),
        sir=sir,
        bad_plans=chance.choice((0, 0, 0, 0, 1, 2)) if kind in PLANNED else 0,
        children=chance.randint(1, 3) if kind is Kind.SPAWNING else 0,
    )


def _write_failures(
    chance: random.Random, key: str, kind: Kind, rates: Rates
) -> tuple[list[Trouble], Verdict | None]:
    """Write the causes of each failed attempt, and what Sir says when there are three in a row."""
    count = 0
    while count < MAX_RETRIES and chance.random() < rates.fail:
        count += 1
    sir = chance.choice(tuple(Verdict)) if count == MAX_RETRIES else None
    if sir in (Verdict.RETRY, Verdict.AMEND):
        count += chance.randint(0, MAX_RETRIES - 1)
    return [_write_cause(chance, f"{key} #{n}", kind, rates) for n in range(1, count + 1)], sir


def _write_cause(chance: random.Random, where: str, kind: Kind, rates: Rates) -> Trouble:
    weights = {
        Fault.REPORTED: 0.5,
        Fault.OVERTIME: 0.1 + rates.timeouts,
        Fault.SILENT: 0.1 + rates.timeouts,
        Fault.CONTRADICTORY: 0.1 + rates.contradictions,
    }
    if kind is Kind.LIGHT:
        # It has told its intent and its plan before: that is progress, and its silence no failure.
        del weights[Fault.SILENT]
    if kind not in PLANNED:
        # Redone in place, and no failed attempt of the root: only a step counts it as a try.
        del weights[Fault.CONTRADICTORY]
    return _trouble(chance.choices(tuple(weights), tuple(weights.values()))[0], where)


def _trouble(fault: Fault, where: str) -> Trouble:
    words = {
        Fault.REPORTED: f"cause {where}: test TC-{len(where):03d} failed",
        Fault.CONTRADICTORY: f"cause {where}: the tests failed",
        Fault.QUESTION: f"Which way at {where}?",
        Fault.BLOCKED: f"something is missing at {where}",
    }
    return Trouble(fault, words.get(fault, ""))


def _write_steps(
    chance: random.Random, key: str, kind: Kind, failures: Sequence[Trouble], rates: Rates
) -> dict[str, StepScript]:
    if kind not in PLANNED:
        alone = StepScript("", troubles=(*_harmless(chance, key, kind, rates), *failures))
        return {"": _with_ending(chance, alone, kind, rates)}
    shape = _shape(chance, kind)
    leaves = [path for path in shape if not any(one.startswith(f"{path}/") for one in shape)]
    failing = chance.choice(leaves)
    steps: dict[str, StepScript] = {}
    for path, after in shape.items():
        if path not in leaves:
            steps[path] = StepScript(path, after)
            continue
        where = f"{key} {path}"
        troubles = list(_harmless(chance, where, kind, rates))
        if path == failing:
            troubles += _all_tries(chance, where, failures, rates)
        elif chance.random() < rates.fail / 2:
            # One try that fails and one that does not: the attempt goes on.
            troubles.append(_write_cause(chance, f"{where} once", kind, rates))
        step = StepScript(path, after, tuple(troubles))
        steps[path] = _with_ending(chance, step, kind, rates)
    return steps


def _with_ending(chance: random.Random, step: StepScript, kind: Kind, rates: Rates) -> StepScript:
    worker_dies = chance.random() < rates.kill_workers
    return replace(
        step,
        worker_dies=worker_dies,
        writes_file=worker_dies or chance.random() < 0.2,
        is_refuted=kind is not Kind.SPAWNING and chance.random() < rates.contradictions,
    )


def _all_tries(
    chance: random.Random, where: str, failures: Sequence[Trouble], rates: Rates
) -> list[Trouble]:
    """Put before the cause that ends each attempt the tries that failed before it."""
    troubles: list[Trouble] = []
    for number, cause in enumerate(failures, 1):
        for earlier in range(1, TRIES):
            name = f"{where} try {number}.{earlier}"
            troubles.append(_write_cause(chance, name, Kind.THREE_STEP, rates))
        troubles.append(cause)
    return troubles


def _shape(chance: random.Random, kind: Kind) -> dict[str, tuple[str, ...]]:
    """Draw a small DAG: a chain, a fork, or a fork that joins; one step of a nested plan is big."""
    forms: Sequence[dict[str, tuple[str, ...]]] = (
        {"1": ()},
        {"1": (), "2": ("1",)},
        {"1": (), "2a": ("1",), "2b": ("1",), "3": ("2a", "2b")},
        {"1a": (), "1b": (), "2": ("1a", "1b")},
    )
    shape = dict(chance.choice(forms))
    if kind is Kind.NESTED:
        shape |= {"big": ("1",) if "1" in shape else (), "big/1": (), "big/2": ("1",)}
    return shape


def _harmless(chance: random.Random, where: str, kind: Kind, rates: Rates) -> tuple[Trouble, ...]:
    """Draw what goes wrong without counting against anybody, each at most once a step."""
    rated = {
        Fault.SLOW: rates.slow,
        Fault.RELEASED: rates.slow / 2,
        Fault.BLOCKED: rates.questions / 2,
        Fault.BAD_HANDOFF: rates.handoffs,
        Fault.QUESTION: rates.questions,
    }
    if kind is Kind.SPAWNING:
        rated = {Fault.BAD_HANDOFF: rates.handoffs}
    return tuple(_trouble(fault, where) for fault, rate in rated.items() if chance.random() < rate)
