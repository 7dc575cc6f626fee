"""Geometry of what the server draws: phase bands, impact sub-graph, timeline, score scale.

Pure arithmetic over small typed rows; no queries and no rules of the method. A step's rank is its
longest path inside the band; inside a rank the order is that of the step keys, so one event moves
nothing else. Runs in O(steps + dependencies).
Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil


@dataclass(frozen=True, slots=True)
class Box:
    """Sizes of a layered drawing. Units: pixels."""

    width: int
    height: int
    gap_x: int
    gap_y: int
    arrow: int = 5


NODE_BOX = Box(width=170, height=52, gap_x=30, gap_y=14)
IMPACT_BOX = Box(width=43, height=29, gap_x=13, gap_y=31, arrow=0)


@dataclass(frozen=True, slots=True)
class Placed:
    """One node's place. Units: pixels from the drawing's top left."""

    key: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One drawn dependency. `look` is `open`, `met` or `blocker`."""

    source: str
    target: str
    look: str
    path: str
    arrow: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A layered drawing: places by key, edges, and its size. Units: pixels."""

    places: Mapping[str, Placed]
    edges: tuple[Edge, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Link:
    """One dependency to draw, from the step that comes first to the one that waits."""

    source: str
    target: str
    look: str = "open"


def rank_steps(keys: Sequence[str], links: Iterable[Link]) -> dict[str, int]:
    """Return each key's longest path from a start, without unknown keys and cycles."""
    before: dict[str, set[str]] = {key: set() for key in keys}
    after: dict[str, list[str]] = {key: [] for key in keys}
    for link in links:
        if link.source in before and link.target in before and link.source != link.target:
            before[link.target].add(link.source)
            after[link.source].append(link.target)
    ranks = dict.fromkeys(keys, 0)
    left = {key: len(sources) for key, sources in before.items()}
    queue = [key for key in keys if left[key] == 0]
    for key in queue:
        for target in dict.fromkeys(after[key]):
            ranks[target] = max(ranks[target], ranks[key] + 1)
            left[target] -= 1
            if left[target] == 0:
                queue.append(target)
    return ranks


def lay_out(keys: Sequence[str], links: Sequence[Link], box: Box = NODE_BOX) -> Layout:
    """Place keys by rank from left to right. Shape: `keys` in the order wanted inside a rank."""
    ranks = rank_steps(keys, links)
    sources: dict[str, list[str]] = {key: [] for key in keys}
    for link in links:
        if link.source in sources and link.target in sources:
            sources[link.target].append(link.source)
    columns: dict[int, list[str]] = {}
    for key in keys:
        columns.setdefault(ranks[key], []).append(key)
    tops: dict[str, float] = {}
    for rank in sorted(columns):
        tops.update(_column_tops(columns[rank], sources, tops, box))
    lowest = min(tops.values(), default=0.0)
    places = {
        key: Placed(key, ranks[key] * (box.width + box.gap_x), round(top - lowest))
        for key, top in tops.items()
    }
    width = max((place.x + box.width for place in places.values()), default=0)
    height = max((place.y + box.height for place in places.values()), default=0)
    edges = tuple(
        _edge(places[link.source], places[link.target], link, box)
        for link in links
        if link.source in places and link.target in places
    )
    return Layout(places=places, edges=edges, width=width, height=height)


def _column_tops(
    keys: Sequence[str], sources: Mapping[str, Sequence[str]], tops: Mapping[str, float], box: Box
) -> dict[str, float]:
    """Put each key beside its sources, in order and without overlap."""
    pitch = box.height + box.gap_y
    placed: dict[str, float] = {}
    drift: list[float] = []
    floor: float | None = None
    for key in keys:
        known = [tops[source] for source in sources[key] if source in tops]
        wanted = sum(known) / len(known) if known else (0.0 if floor is None else floor)
        top = wanted if floor is None else max(wanted, floor)
        placed[key] = top
        if known:
            drift.append(top - wanted)
        floor = top + pitch
    shift = sum(drift) / len(drift) if drift else 0.0
    return {key: top - shift for key, top in placed.items()}


def _edge(source: Placed, target: Placed, link: Link, box: Box) -> Edge:
    """Draw one edge as a curve from right side to left side, with its arrow head."""
    x1, y1 = source.x + box.width, source.y + box.height // 2
    x2, y2 = target.x - box.arrow, target.y + box.height // 2
    if target.x <= source.x:
        x1, x2 = source.x + box.width, target.x + box.width + 5
        bend = x1 + 18
        path = f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"
        return Edge(link.source, link.target, link.look, path, _arrow(x2, y2, tip=-5))
    middle = (x2 - x1) // 2
    path = f"M{x1} {y1}C{x1 + middle} {y1} {x2 - middle} {y2} {x2} {y2}"
    return Edge(link.source, link.target, link.look, path, _arrow(x2, y2, tip=5))


def _arrow(x: int, y: int, *, tip: int) -> str:
    return f"M{x + tip} {y}L{x} {y - 3}V{y + 3}Z"


def percent(value: float, whole: float) -> float:
    """Return value as a percentage of whole with one decimal, between 0 and 100."""
    if whole <= 0:
        return 0.0
    return round(min(max(value / whole, 0.0), 1.0) * 100, 1)


# --- Timeline -----------------------------------------------------------------------------------

MIN_BAR_PERCENT = 0.5
MAX_TICKS = 8
MAX_LONG_TICKS = 5
SECONDS_BELOW = timedelta(minutes=10)
"""A shorter axis labels its ticks with seconds, which need more room."""
TICK_STEPS = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(days=1),
    timedelta(days=7),
    timedelta(days=30),
)


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of a step. `look` is work, running, failed, waiting or suspended."""

    look: str
    start: datetime
    end: datetime
    words: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A span on the axis. Units: per cent of the axis."""

    look: str
    x: float
    width: float
    start: datetime
    end: datetime
    words: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A grid line with its time. Units: per cent of the axis."""

    x: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Axis:
    """The time axis: first and last moment, grid lines, and now, if it is on it."""

    start: datetime
    end: datetime
    ticks: tuple[Tick, ...]
    now_x: float | None

    @property
    def shows_seconds(self) -> bool:
        """Whether minutes alone would repeat themselves along the axis."""
        return self.end - self.start < SECONDS_BELOW

    def bar(self, span: Span) -> Bar:
        """Place one span; very short ones stay visible."""
        whole = (self.end - self.start).total_seconds()
        x = percent((span.start - self.start).total_seconds(), whole)
        width = percent((span.end - span.start).total_seconds(), whole)
        width = max(width, MIN_BAR_PERCENT)
        return Bar(span.look, min(x, 100 - width), width, span.start, span.end, span.words)


def make_axis(spans: Iterable[Span], now: datetime) -> Axis:
    """Make one axis for all rows; it ends now while something is open, else at the last span."""
    spans = list(spans)
    edges = [moment for span in spans for moment in (span.start, span.end)]
    start = min(edges, default=now)
    is_open = any(span.end >= now for span in spans)
    end = now if is_open or not edges else max(edges)
    if end - start < timedelta(seconds=10):
        start = end - timedelta(seconds=10)
    length = end - start
    most = MAX_LONG_TICKS if length < SECONDS_BELOW else MAX_TICKS
    step = next(
        (step for step in TICK_STEPS if length / step <= most),
        timedelta(days=30 * ceil(length / timedelta(days=30) / MAX_TICKS)),
    )
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + step * ceil((start - midnight) / step)
    whole = length.total_seconds()
    ticks = []
    while first <= end:
        ticks.append(Tick(percent((first - start).total_seconds(), whole), first))
        first += step
    now_x = 100.0 if end == now else None
    return Axis(start=start, end=end, ticks=tuple(ticks), now_x=now_x)


# --- Score scale --------------------------------------------------------------------------------

LOWEST_TOTAL, HIGHEST_TOTAL = 5, 25
"""Five dimensions of 1 to 5."""


@dataclass(frozen=True, slots=True)
class ScalePart:
    """One route's stretch of the scale. Units: per cent of its width."""

    route: str
    x: float
    width: float
    is_current: bool

    @property
    def middle(self) -> float:
        """Where the route's name stands."""
        return round(self.x + self.width / 2, 1)


def scale_parts(total: int, simple: int, medium: int) -> tuple[tuple[ScalePart, ...], float]:
    """Cut the scale at both thresholds and return its parts and the place of the total."""
    whole = HIGHEST_TOTAL - LOWEST_TOTAL
    cuts = (
        0.0,
        percent(simple + 0.5 - LOWEST_TOTAL, whole),
        percent(medium + 0.5 - LOWEST_TOTAL, whole),
        100.0,
    )
    current = 0 if total <= simple else 1 if total <= medium else 2
    parts = tuple(
        ScalePart(
            route=route,
            x=cuts[index] + (0.5 if index else 0),
            width=round(cuts[index + 1] - cuts[index] - (0.5 if index else 0), 1),
            is_current=index == current,
        )
        for index, route in enumerate(("direct", "light_plan", "three_step"))
    )
    return parts, percent(total - LOWEST_TOTAL, whole)
