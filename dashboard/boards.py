"""The project board as drawn rows: pipeline, master list, phase bands, timeline, log lines.

Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard.charts import Band, GraphNode, MasterRow, Stage
from dashboard.clock import short_age
from dashboard.drawings import NODE_BOX, Link, lay_out
from dashboard.not_ready import root_reason_words
from dashboard.phrases import listed
from dashboard.places import address, task_url, with_query
from dashboard.presenters import task_label
from dashboard.vocabulary import WAITING, WAITING_FOR_AGENT, Label, Role
from orchestration.contracts.loop import Verdict
from orchestration.models import Project, Task
from orchestration.selectors.board import Running, Traffic, WorkLeft
from orchestration.selectors.graph import PhaseSteps, Step, StepEdge, StepGraph
from orchestration.selectors.master import MasterTask
from orchestration.selectors.root_queue import RootQueue
from orchestration.states import ProjectStatus, Seat, TaskStatus

T = TaskStatus
EXPECTED = {"direct": 60, "direct_by_score": 20, "light": 15, "three_step": 5}
"""The shares of traffic that the method expects, in per cent. Source: DESIGN section 5."""
SHORT_KEY = 4
WIDE_BOX = replace(NODE_BOX, width=224)
"""Step keys that are words need a wider node, or nothing of the title is left."""
SEAT_WORDS = {
    Seat.SCORER: _("scorer"),
    Seat.PLANNER: _("planner"),
    Seat.AUDITOR: _("auditor"),
    Seat.EXECUTOR: _("executor"),
    Seat.QA: _("QA"),
    Seat.FIXER: _("fixer"),
    Seat.CROSS_VERIFIER: _("cross-check"),
    Seat.VALIDATOR: _("validator"),
}


def seat_word(seat: str) -> str:
    """The word of a seat."""
    return str(SEAT_WORDS[Seat(seat)])


# --- Pipeline -------------------------------------------------------------------------------------


def make_stages(traffic: Traffic, running: Running) -> list[Stage]:
    """The four stages with their figures, shares and the shares that the method expects."""
    whole = traffic.messages
    return [
        Stage(
            "S0", _("Filter"), str(whole),
            ngettext("message", "messages", whole),
            [*_share(gettext("direct"), traffic.direct_by_rule, whole, EXPECTED["direct"])],
        ),
        Stage(
            "S1", _("Score"), str(traffic.scored), gettext("scored"),
            [
                *_share(gettext("direct"), traffic.direct_by_score, whole,
                        EXPECTED["direct_by_score"]),
                *_share_after(gettext("light plan"), traffic.light, whole, EXPECTED["light"]),
            ],
        ),
        Stage(
            "S2", _("Plan and audit"), str(traffic.three_step), gettext("three-step"),
            [*_share(gettext("of traffic"), traffic.three_step, whole, EXPECTED["three_step"])],
        ),
        Stage(
            "S3", _("Execute"), str(running.working + running.review), gettext("running now"),
            _running_facts(running),
        ),
    ]  # fmt: skip


def _share(word: str, part: int, whole: int, expected: int) -> list[tuple[str, str]]:
    """A share in per cent beside the expected one; with no traffic there is none."""
    if not whole:
        return [(gettext("no traffic yet"), "quiet")]
    return [
        (f"{word} {round(100 * part / whole)} %", ""),
        (gettext("expected %(n)s") % {"n": expected}, "quiet"),
    ]


def _share_after(word: str, part: int, whole: int, expected: int) -> list[tuple[str, str]]:
    """A second share of the same stage."""
    return [("·", "quiet"), *_share(word, part, whole, expected)] if whole else []


def _running_facts(running: Running) -> list[tuple[str, str]]:
    parts = []
    if running.working:
        parts.append(gettext("%(n)s working") % {"n": running.working})
    if running.review:
        parts.append(gettext("%(n)s in review") % {"n": running.review})
    facts = [(listed(parts) or gettext("nothing runs"), "" if parts else "quiet")]
    if running.waiting:
        words = ngettext("%(n)s waits for you", "%(n)s wait for you", running.waiting)
        facts += [("·", "quiet"), (words % {"n": running.waiting}, "sir")]
    return facts


def work_left_words(left: WorkLeft) -> str:
    """How much work the plans still hold; the word says what it leaves out."""
    if not left.steps:
        return ""
    if left.minutes is None:
        return gettext("no estimate")
    return gettext("about %(time)s of work left if nothing waits") % {
        "time": short_age(left.minutes * 60)
    }


# --- Master list ----------------------------------------------------------------------------------


def make_master_row(
    row: MasterTask,
    project: Project,
    *,
    current: int | None = None,
    query: str = "",
    queue: RootQueue | None = None,
) -> MasterRow:
    """One root on the list. A root in progress follows its project: its steps change it."""
    task = row.task
    task.project = project
    label = task_label(task.status, task.cancel_reason)
    if row.needs_agent and task.status in (T.PENDING, T.WORKING) and not row.waiting:
        label = WAITING_FOR_AGENT
    key = f"{project.key_prefix}-{task.number}"
    moves = task.status in (T.CLAIMED, T.WORKING, T.REVIEW)
    return MasterRow(
        key=key,
        title=task.title,
        url=with_query(address("board", project.slug), {"task": task.pk}) + query,
        label=label,
        stage=row.stage if task.status not in (T.DONE, T.CANCELLED) else "",
        note=_master_note(task, queue),
        steps=f"{row.steps_done}/{row.steps_total}" if row.steps_total else "",
        waiting=0 if label == WAITING and row.waiting == 1 else row.waiting,  # said once
        is_current=task.pk == current,
        topic=f"project:{project.pk}" if moves else f"task:{task.pk}",
        version=task.version,
        fragment_url=address("master_row", project.slug, task.pk),
    )


def _master_note(task: Task, queue: RootQueue | None) -> str:
    origin = gettext("self-initiated") if task.is_self_initiated else ""
    return " · ".join(filter(None, (origin, _state_note(task, queue))))


def _state_note(task: Task, queue: RootQueue | None) -> str:
    if task.status == T.PENDING:
        return root_reason_words(task, queue)
    if task.status == T.CANCELLED:
        return gettext("by Sir") if task.cancel_reason == "cancelled_by_sir" else ""
    if task.status in (T.WORKING, T.FAILED):
        return _attempt_note(task)
    is_told = task.last_outcome == "done"  # the state says so already
    return task.last_outcome[:60] if task.status == T.DONE and not is_told else ""


def _attempt_note(task: Task) -> str:
    """Say which attempt runs or comes next, and the last verdict; Sir's retry counts anew."""
    verdict = next((one for one in Verdict if task.last_outcome.startswith(f"{one}:")), None)
    has_failed = task.failure_count or task.transient_failures
    if not has_failed:
        return ""
    most = task.project.policy.thresholds.max_retries
    numbers = {"verdict": verdict, "n": task.failure_count + 1, "all": most}
    if verdict is None:
        return gettext("attempt %(n)s of %(all)s") % numbers
    return gettext("%(verdict)s, re-plan %(n)s of %(all)s") % numbers


# --- Phase graph ----------------------------------------------------------------------------------


def make_bands(
    graph: StepGraph, project: Project, *, current: int | None, now: datetime | None = None
) -> list[Band]:
    """One band a phase, each laid out on its own; phases that were not read are folded."""
    targets: dict[str, list[str]] = {}
    sources: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(edge.target)
        sources.setdefault(edge.target, []).append(edge.source)
    known = {one.task.pk for one in graph.steps}
    chosen = current if current in known else _most_wanted(graph.steps)
    has_long_keys = any(len(one.task.step_key) > SHORT_KEY for one in graph.steps)
    box = WIDE_BOX if has_long_keys else NODE_BOX
    bands = []
    for phase in graph.phases:
        if not phase.is_read:
            bands.append(_folded_band(graph.root, phase, project, now=now))
            continue
        keys = [one.task.step_key for one in phase.steps]
        layout = lay_out(keys, _links(graph.edges, keys), box)
        nodes = [
            make_node(
                step, project, x=layout.places[step.task.step_key].x,
                y=layout.places[step.task.step_key].y, is_current=step.task.pk == chosen,
                next_keys=targets.get(step.task.step_key, ()),
                previous_keys=sources.get(step.task.step_key, ()), now=now,
            )
            for step in phase.steps
        ]  # fmt: skip
        label = band_label(graph.root, phase)
        bands.append(
            Band(
                phase.phase, _phase_word(phase), "", label, str(label.word), nodes, layout.edges,
                layout.width, layout.height, topic=f"project:{project.pk}",
                fragment_url=address("band", project.slug, graph.root.pk, phase.phase),
                node_width=box.width,
            )
        )  # fmt: skip
    return bands


def _most_wanted(steps: Sequence[Step]) -> int | None:
    """The step to look at first: one that waits for Sir, else one at work, else the first."""
    ranked = sorted(
        steps, key=lambda one: (not one.waits_for_sir, one.task.status not in (T.WORKING, T.REVIEW))
    )
    return ranked[0].task.pk if ranked else None


def _phase_word(phase: PhaseSteps) -> str:
    return gettext("Phase %(n)s") % {"n": phase.phase}


def _links(edges: Sequence[StepEdge], keys: Sequence[str]) -> list[Link]:
    known = set(keys)
    return [
        Link(one.source, one.target, "blocker" if one.is_blocker else _edge_look(one))
        for one in edges
        if one.source in known and one.target in known
    ]


def _edge_look(edge: StepEdge) -> str:
    return "met" if edge.is_met else "open"


def band_label(root: Task, phase: PhaseSteps) -> Label:
    """Closed, open, or waiting for an earlier phase, with how many steps are finished."""
    numbers = {"n": phase.finished, "all": phase.total}
    if phase.finished == phase.total:
        words = gettext("closed, %(n)s of %(all)s") % numbers
        return Label("circle-check", words, Role.GREEN)
    if phase.phase <= root.open_phase:
        return Label("progress", gettext("open, %(n)s of %(all)s") % numbers, Role.BLUE)
    words = gettext("starts when phase %(n)s closes") % {"n": phase.phase - 1}
    return Label("circle-dashed", words, Role.GREY)


def _folded_band(root: Task, phase: PhaseSteps, project: Project, *, now: datetime | None) -> Band:
    label = band_label(root, phase)
    counts = [
        (task_label(status, why), n) for (status, why), n in sorted(phase.counts.items()) if n
    ]
    alarming = [make_node(step, project, x=0, y=0, now=now) for step in phase.alarming]
    return Band(
        phase.phase, _phase_word(phase), "", label, str(label.word), alarming, (), 0, 0,
        is_collapsed=True, counts=counts, topic=f"project:{project.pk}",
        fragment_url=address("band", project.slug, root.pk, phase.phase),
        open_url=address("board", project.slug, task=root.pk, phase=phase.phase),
    )  # fmt: skip


def make_node(
    step: Step,
    project: Project,
    *,
    x: int,
    y: int,
    is_current: bool = False,
    next_keys: Sequence[str] = (),
    previous_keys: Sequence[str] = (),
    now: datetime | None = None,
) -> GraphNode:
    """One step as a node: its state and the one useful fact."""
    task = step.task
    return GraphNode(
        id=str(task.pk),
        key=task.step_key,
        title=task.title,
        label=step_label(step),
        fact=step_fact(step, now),
        url=task_url(task, project),
        x=x,
        y=y,
        version=task.version,
        topic=f"task:{task.pk}",
        fragment_url=address("node", project.slug, task.pk),
        is_current=is_current,
        waits_for_sir=step.waits_for_sir,
        next_keys=" ".join(next_keys or step.next_keys),
        previous_keys=" ".join(previous_keys or step.previous_keys),
        is_finished=step.is_finished,
    )


def step_label(step: Step) -> Label:
    """A step's state; an open decision about it comes first, then a missing agent."""
    if step.waits_for_sir:
        return WAITING
    task = step.task
    if step.needs_agent and task.status in (T.PENDING, T.WORKING, T.REVIEW):
        return WAITING_FOR_AGENT
    return task_label(task.status, task.cancel_reason)


def step_fact(step: Step, now: datetime | None = None) -> str:
    """The one useful fact: elapsed time, how long it waits, what it needs, or who reviews it."""
    task, now = step.task, now or timezone.now()
    if step.waiting_since is not None:
        return short_age((now - step.waiting_since).total_seconds())
    if step.needs_agent:
        return seat_word(step.seat) if step.seat else ""
    if task.status == T.BLOCKED and step.blocked_by:
        return gettext("by %(keys)s") % {"keys": _keys(step.blocked_by)}
    if task.status == T.PENDING:
        if step.needs:
            return gettext("needs %(keys)s") % {"keys": _keys(step.needs)}
        return gettext("commands to approve") if task.is_awaiting_commands else ""
    if task.status == T.REVIEW:
        return seat_word(step.seat) if step.seat else ""
    return _elapsed(step, now)


def _keys(keys: Sequence[str]) -> str:
    return ", ".join(keys[:3]) + ("…" if len(keys) > 3 else "")


def _elapsed(step: Step, now: datetime) -> str:
    if step.started_at is None or step.task.status == T.CANCELLED:
        return ""
    ends = now if step.task.status in (T.CLAIMED, T.WORKING) else step.finished_at
    return short_age(((ends or now) - step.started_at).total_seconds())


# --- The same steps as a table --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step in the table view."""

    key: str
    title: str
    url: str
    phase: int
    label: Label
    fact: str
    needs: str


def make_step_lines(graph: StepGraph, project: Project) -> list[StepLine]:
    """The steps that were read, as lines."""
    needs: dict[str, list[str]] = {}
    for edge in graph.edges:
        if not edge.is_blocker:
            needs.setdefault(edge.target, []).append(edge.source)
    return [
        StepLine(
            key=step.task.step_key,
            title=step.task.title,
            url=task_url(step.task, project),
            phase=step.task.phase,
            label=step_label(step),
            fact="" if step.needs else step_fact(step),
            needs=", ".join(needs.get(step.task.step_key, ())),
        )
        for step in graph.steps
    ]


def may_pause(project: Project) -> bool:
    """Whether a project can be paused now."""
    return project.status == ProjectStatus.ACTIVE
