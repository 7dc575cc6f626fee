"""What the drawn parts take: impact, score scale, phase graph, timeline, log, pipeline, list.

Source: UI.md sections 5.2 to 5.5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dashboard.drawings import Axis, Bar, Edge, ScalePart
from dashboard.vocabulary import Label

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

BAR_PITCH = 16


@dataclass(frozen=True, slots=True)
class ImpactNode:
    """One step of the impact drawing. `look`: subject, locked or waiting."""

    key: str
    x: int
    y: int
    look: str


@dataclass(frozen=True, slots=True)
class ImpactItem:
    """One line of the impact list, with what a verdict does to it."""

    key: str
    title: str
    icon: str
    effect: str | StrPromise
    url: str = ""


@dataclass(frozen=True, slots=True)
class Impact:
    """`impact`: the highlighted sub-graph, the list, and what was left out."""

    summary: str
    nodes: Sequence[ImpactNode]
    edges: Sequence[Edge]
    width: int
    height: int
    items: Sequence[ImpactItem]
    more: str = ""
    more_url: str = ""
    note: str = ""
    phases: int = 0


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of S1's five dimensions. `evidence` is what was counted."""

    word: str | StrPromise
    value: int
    evidence: str

    @property
    def bars(self) -> tuple[tuple[int, bool], ...]:
        """The five bars: place in pixels, and whether the value reaches it."""
        return tuple((index * BAR_PITCH, index < self.value) for index in range(5))


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """`score_scale`: the total on its scale and the five bars."""

    total: int
    total_x: float
    parts: Sequence[ScalePart]
    simple: int
    medium: int
    dimensions: Sequence[Dimension]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """`phase_node`: one step as a button. Units: pixels inside its band."""

    id: str
    key: str
    title: str
    label: Label
    fact: str
    url: str
    x: int
    y: int
    version: int = 1
    topic: str = ""
    fragment_url: str = ""
    is_current: bool = False
    waits_for_sir: bool = False
    next_keys: str = ""
    previous_keys: str = ""
    is_finished: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """`phase_graph`: one phase, laid out on its own. A collapsed one shows counts only."""

    phase: int
    word: str
    title: str
    label: Label
    state: str
    nodes: Sequence[GraphNode]
    edges: Sequence[Edge]
    width: int
    height: int
    is_collapsed: bool = False
    counts: Sequence[tuple[Label, int]] = ()
    topic: str = ""
    fragment_url: str = ""
    open_url: str = ""
    node_width: int = 170


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One step's bars on the shared axis."""

    key: str
    title: str
    bars: Sequence[Bar]
    summary: str


@dataclass(frozen=True, slots=True)
class Gantt:
    """`gantt`: the timeline as a server-made SVG. `summary` is its text form."""

    axis: Axis
    rows: Sequence[GanttRow]
    summary: str
    row_height: int = 26

    @property
    def height(self) -> int:
        """Height of the plot. Units: pixels."""
        return self.row_height * len(self.rows)


@dataclass(frozen=True, slots=True)
class LogLine:
    """`log`: one line. `look` is empty or bad."""

    at: datetime
    step: str
    source: str
    text: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """`pipeline`: one of S0 to S3 with its figure, share and expected share."""

    code: str
    word: str | StrPromise
    figure: str
    unit: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class MasterRow:
    """`master_row`: one root task on the list."""

    key: str
    title: str
    url: str
    label: Label
    stage: str
    note: str
    steps: str
    waiting: int = 0
    is_current: bool = False
    topic: str = ""
    version: int = 1
    fragment_url: str = ""
