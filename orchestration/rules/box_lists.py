"""`task.md` and `plan.md`: lists of boxes that become SubCoding tasks.

Each parser refuses a malformed document with every fault and its line.
Source: FORMATS ("strict-plan documents", "strict-spec documents"), source document 004.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestration.contracts.graph import find_cycles
from orchestration.rules.change_names import is_change_id
from orchestration.rules.marked_text import (
    Box,
    Faults,
    Line,
    box_of,
    field_of,
    folded,
    heading_of,
    labels_of,
    read_lines,
    tick,
)

TASK_MD, PLAN_MD = "task.md", "plan.md"
MAX_TASK_ITEMS = 100
MAX_PLAN_ITEMS = 3
NUMBER_OF_ITEM = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
SPLIT = re.compile(r"[\s,;，、；]+")
REQUIREMENT = re.compile(r"FR-\d{3}")
NONE_WORDS = frozenset({"none", "no", "-", "—", "n/a", "无", "没有", "暂无"})
SECTION_NAMES = frozenset({"implementation", "implement", "实施", "实现", "实施清单", "实施任务"})
TASK_FIELDS: Mapping[str, Sequence[str]] = {
    "target": ("target object", "目标对象", "目标"),
    "purpose": ("修改目的", "目的"),
    "method": ("修改方式", "方式"),
    "dependencies": ("depends on", "相关依赖", "依赖"),
    "content": ("修改内容", "内容"),
}
PLAN_FIELDS: Mapping[str, Sequence[str]] = {
    "change": ("change id", "change-id", "变更", "变更编号"),
    "spec": ("spec path", "specification", "需求文档"),
    "design": ("design path", "设计文档"),
    "function": ("功能",),
    "requirements": ("requirement ids", "需求编号", "需求"),
    "demo": ("demonstration", "演示", "可演示"),
    "dependencies": ("depends on", "依赖", "相关依赖"),
}
OPTIONAL = frozenset({"demo"})
TASK_LABELS, PLAN_LABELS = labels_of(TASK_FIELDS), labels_of(PLAN_FIELDS)
LABELS_SHOWN: Mapping[str, str] = {"target": "target object", "change": "change id",
                                   "requirements": "requirement ids", "spec": "spec path",
                                   "design": "design path", "demo": "demonstration"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One box with its fields. Shape: `depends_on` are numbers of other boxes."""

    box: Box
    fields: Mapping[str, str]
    depends_on: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """The number it carries."""
        return self.box.number

    @property
    def title(self) -> str:
        """What stands behind the number."""
        return self.box.title

    @property
    def is_done(self) -> bool:
        """Whether the box is ticked."""
        return self.box.is_done


@dataclass(frozen=True, slots=True)
class BoxList:
    """A parsed list. Shape: `items` in the author's order, numbers unique, dependencies a DAG."""

    items: tuple[Item, ...]

    @property
    def open_items(self) -> tuple[Item, ...]:
        """The boxes that are not ticked yet."""
        return tuple(one for one in self.items if not one.is_done)


def parse_task_md(text: str) -> BoxList:
    """Read `task.md`: one implementation section of numbered boxes with five fields each.

    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(TASK_MD)
    lines = read_lines(TASK_MD, text, faults)
    body = _implementation(lines, faults)
    blocks = _blocks(body, TASK_LABELS, faults)
    items = [_item(box, fields, TASK_FIELDS, faults) for box, fields in blocks]
    for one in items:
        if "." not in one.number:
            faults.add(one.box.line, f"number {one.number} must have the form n.m")
    _count(items, MAX_TASK_ITEMS, faults)
    _check_graph(items, faults)
    faults.check()
    return BoxList(tuple(items))


def parse_plan_md(
    text: str,
    *,
    requirements: Sequence[str] | None = None,
    change: str = "",
    spec: str = "",
    design: str = "",
) -> BoxList:
    """Read `plan.md`: nothing but one to three numbered boxes, the first of them demonstrable.

    `requirements` are those of the specification; each must be covered exactly once. `change` and
    the two paths are what each box must name, where they are known.
    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(PLAN_MD)
    lines = read_lines(PLAN_MD, text, faults)
    blocks = _blocks(lines, PLAN_LABELS, faults)
    items = [_item(box, fields, PLAN_FIELDS, faults) for box, fields in blocks]
    for place, one in enumerate(items, start=1):
        if one.number != str(place):
            faults.add(one.box.line, f"number {one.number} must be {place}")
        _check_names(one, {"change": change, "spec": spec, "design": design}, faults)
    if items and not items[0].fields.get("demo", "").strip():
        faults.add(items[0].box.line, "the first box must say how it is demonstrated (`Demo:`)")
    _count(items, MAX_PLAN_ITEMS, faults)
    _check_graph(items, faults)
    _check_coverage(items, requirements, faults)
    faults.check()
    return BoxList(tuple(items))


def _implementation(lines: Sequence[Line], faults: Faults) -> list[Line]:
    """Cut out the one implementation section."""
    body: list[Line] = []
    sections = 0
    for line in lines:
        heading = heading_of(line)
        if heading is None:
            if sections or line.raw.strip():
                body.append(line)
            continue
        if heading.level == 1 and not sections and not body:
            continue
        name = folded(heading.text).lstrip("0123456789. ")
        if heading.level == 2 and name in SECTION_NAMES and not sections:
            sections += 1
        else:
            faults.add(line.number, "only one section is allowed: `## Implementation`")
    if not sections:
        faults.add(1, "needs the section `## Implementation`")
    return body


Fields = dict[str, tuple[int, list[str]]]


def _blocks(
    lines: Sequence[Line], labels: Mapping[str, str], faults: Faults
) -> list[tuple[Box, Fields]]:
    """Gather each box with its fields; a line that belongs to none is a fault."""
    found: list[tuple[Box, Fields]] = []
    current = ""
    for line in lines:
        box = box_of(line, faults)
        if box is not None:
            found.append((box, {}))
            current = ""
            continue
        if not line.raw.strip():
            continue
        is_inside = bool(found) and (line.is_fenced or line.raw[:1] in " \t【\u3000")
        if not is_inside:
            faults.add(line.number, "belongs to no box; write fields indented below their box")
            continue
        named = field_of(line, labels)
        fields = found[-1][1]
        if named is not None and named[0] not in fields:
            current = named[0]
            fields[current] = (line.number, [named[1]])
        elif named is not None and current != "content":
            faults.add(line.number, f"gives the field {_shown(named[0])} a second time")
        elif current:
            fields[current][1].append(line.raw.rstrip())
        else:
            faults.add(line.number, "is no labelled field")
    return found


def _item(box: Box, fields: Fields, known: Mapping[str, Sequence[str]], faults: Faults) -> Item:
    values = {name: "\n".join(rows).rstrip() for name, (_, rows) in fields.items()}
    needed = [name for name in known if name not in OPTIONAL]
    if "requirements" in known:
        needed.remove("dependencies")
    for name in needed:
        if not values.get(name, "").strip():
            faults.add(box.line, f"box {box.number} needs the field {_shown(name)}")
    line = fields["dependencies"][0] if "dependencies" in fields else box.line
    depends_on = tuple(_dependencies(values.get("dependencies", ""), line, faults))
    requirements: tuple[str, ...] = ()
    if values.get("requirements", "").strip():
        requirements = tuple(
            _requirements(values["requirements"], fields["requirements"][0], faults)
        )
    return Item(box, values, depends_on, requirements)


def _shown(name: str) -> str:
    return LABELS_SHOWN.get(name, name)


def _dependencies(text: str, line: int, faults: Faults) -> Iterator[str]:
    """Read `none`, or numbers of other boxes."""
    if not text.strip() or folded(text) in NONE_WORDS:
        return
    for word in filter(None, SPLIT.split(text.strip())):
        if NUMBER_OF_ITEM.fullmatch(word):
            yield word
        else:
            faults.add(line, f"dependencies are numbers of boxes, or none; not {word[:40]!r}")
            return


def _requirements(text: str, line: int, faults: Faults) -> Iterator[str]:
    for word in filter(None, SPLIT.split(text.strip())):
        if REQUIREMENT.fullmatch(word):
            yield word
        else:
            faults.add(line, f"a requirement is named FR-001; not {word[:40]!r}")


def _check_names(item: Item, wanted: Mapping[str, str], faults: Faults) -> None:
    """Each box names the change and the paths it comes from."""
    given = item.fields.get("change", "").strip().strip("`")
    if given and not is_change_id(given):
        faults.add(item.box.line, f"change id {given[:40]!r} is not kebab-case")
    for name, value in wanted.items():
        said = item.fields.get(name, "").strip().strip("`")
        if value and said and said != value:
            faults.add(item.box.line, f"{_shown(name)} must be {value}")


def _count(items: Sequence[Item], most: int, faults: Faults) -> None:
    if not items:
        faults.add(1, "has no box")
    if len(items) > most:
        faults.add(items[most].box.line, f"has {len(items)} boxes; at most {most} are allowed")


def _check_graph(items: Sequence[Item], faults: Faults) -> None:
    """Numbers are unique, dependencies exist, nothing waits for itself."""
    first: dict[str, int] = {}
    for one in items:
        if one.number in first:
            message = f"number {one.number} stands on line {first[one.number]} already"
            faults.add(one.box.line, message)
        first.setdefault(one.number, one.box.line)
    graph: dict[str, list[str]] = {key: [] for key in first}
    for one in items:
        for needed in one.depends_on:
            if needed not in first:
                faults.add(one.box.line, f"depends on {needed}, which is no box of this list")
            elif needed == one.number:
                faults.add(one.box.line, f"box {needed} depends on itself")
            else:
                graph[one.number].append(needed)
    for cycle in find_cycles(graph):
        named = " → ".join([*cycle, cycle[0]])
        faults.add(first[cycle[0]], f"the boxes wait for each other: {named}")


def _check_coverage(
    items: Sequence[Item], requirements: Sequence[str] | None, faults: Faults
) -> None:
    """Every requirement is covered by exactly one box."""
    seen: dict[str, Item] = {}
    for one in items:
        for name in one.requirements:
            if name in seen:
                message = f"{name} is covered by box {seen[name].number} already"
                faults.add(one.box.line, message)
            seen.setdefault(name, one)
            if requirements is not None and name not in requirements:
                faults.add(one.box.line, f"{name} is no requirement of the specification")
    for name in requirements or ():
        if name not in seen:
            faults.add(items[0].box.line if items else 1, f"{name} is covered by no box")


def tick_item(text: str, item: Item) -> str:
    """Tick one box of a list; not another byte changes."""
    return text if item.is_done else tick(text, item.box)


def mark_items(text: str, boxes: BoxList, done: Container[str]) -> str:
    """Tick the boxes with these numbers and open all others; not another byte changes."""
    for one in boxes.items:
        if one.is_done != (one.number in done):
            text = tick(text, one.box, "x" if one.number in done else " ")
    return text


def render_task_md(items: Sequence[Item], *, title: str = "Tasks") -> str:
    """Write `task.md` from its items; parsing gives the same items back."""
    return "\n".join([f"# {title}", "", "## Implementation", "", *_rendered(items, TASK_FIELDS)])


def render_plan_md(items: Sequence[Item]) -> str:
    """Write `plan.md` from its items; parsing gives the same items back."""
    return "\n".join(_rendered(items, PLAN_FIELDS))


def _rendered(items: Sequence[Item], known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for one in items:
        mark = "x" if one.is_done else " "
        yield f"- [{mark}] {one.number} {one.title}"
        for name in known:
            if name not in one.fields:
                continue
            head, *more = one.fields[name].split("\n")
            yield f"  - {_shown(name).capitalize()}: {head}"
            yield from (row if row[:1] in " \t" or not row else f"    {row}" for row in more)
    yield ""
