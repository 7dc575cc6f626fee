"""`spec.md` and `tech.md`: what strict-spec demands of a specification and of a design.

Each parser refuses a malformed document with every fault and its line.
Source: FORMATS ("strict-spec documents").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestration.rules.marked_text import (
    Faults,
    Heading,
    Line,
    field_of,
    folded,
    heading_of,
    labels_of,
    read_lines,
)

SPEC_MD, TECH_MD = "spec.md", "tech.md"
SCENARIOS_LEAST, SCENARIOS_MOST = 3, 5
FIVE_W: Mapping[str, Sequence[str]] = {
    "what": ("何事", "做什么", "是什么"),
    "why": ("何因", "为什么", "为何"),
    "who": ("何人", "谁", "用户"),
    "when": ("何时", "时间"),
    "where": ("何地", "何处", "场景"),
    "how": ("如何", "怎么做", "方式"),
    "how much": ("how many", "多少", "成本", "规模"),
}
SMART: Mapping[str, Sequence[str]] = {
    "specific": ("具体",),
    "measurable": ("可衡量", "可度量"),
    "achievable": ("attainable", "可实现", "可达成"),
    "relevant": ("相关", "相关性"),
    "time-bound": ("timely", "time bound", "有时限", "时限"),
}
SCENARIO: Mapping[str, Sequence[str]] = {
    "condition": ("given", "条件", "前提", "假设"),
    "action": ("when", "操作", "动作", "当"),
    "expected": ("then", "预期", "期望", "则", "结果"),
    "failure": ("failure path", "失败", "失败路径", "异常"),
}
FIVE_LABELS, SCENARIO_LABELS = labels_of(FIVE_W), labels_of(SCENARIO)
SMART_LABELS = labels_of(SMART)
SECTIONS: Mapping[str, Sequence[str]] = {
    "5w2h": ("5w2h 分析", "5w2h analysis", "five w two h"),
    "stories": ("user stories", "用户故事", "故事"),
    "requirements": ("functional requirements", "功能需求", "需求"),
    "success": ("success criteria", "成功标准", "成功准则"),
    "smart": ("smart check", "smart checklist", "smart check list", "smart 检查", "smart 检查清单"),
}
SECTION_LABELS = labels_of(SECTIONS)
STORY = re.compile(r"(?:story|user story|故事|用户故事)[ \t]*(\d{1,3})\b(.*)", re.IGNORECASE)
PRIORITY = re.compile(r"[(\[ ]P([1-3])\b")
PRIORITY_LEFT = re.compile(r"[(\[（【 ]P[1-3][)\]）】 ]?")
LISTED = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)")
PARTS = re.compile(r"[;；]|(?:->|→)")
REQUIREMENT = re.compile(r"[ \t]*[-*+][ \t]+(?:\*\*)?(FR-\w{1,10})(?:\*\*)?(.*)")
CRITERION = re.compile(r"[ \t]*[-*+][ \t]+(?:\*\*)?(SC-\w{1,10})(?:\*\*)?[ \t]*:?[ \t]*(.*)")
OF_STORY = re.compile(r"\[[ \t]*(?:story|故事)[ \t]*(\d{1,3})[ \t]*\]", re.IGNORECASE)
SMART_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]*(?:\*\*)?([^:*]{1,40})")


@dataclass(slots=True)
class Story:
    """A user story. Shape: `scenarios` are (condition, action, expected)."""

    number: int
    title: str
    priority: int
    line: int
    scenarios: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A functional requirement of a story."""

    id: str
    story: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Specification:
    """A parsed `spec.md`."""

    five_w: Mapping[str, str]
    stories: tuple[Story, ...]
    requirements: tuple[Requirement, ...]
    criteria: Mapping[str, str]
    smart: Mapping[str, bool]

    @property
    def requirement_ids(self) -> tuple[str, ...]:
        """What `plan.md` has to cover, each exactly once."""
        return tuple(one.id for one in self.requirements)


@dataclass(slots=True)
class _Section:
    heading: Heading
    lines: list[tuple[Line, Heading | None]] = field(default_factory=list)


def parse_spec_md(text: str) -> Specification:
    """Read `spec.md`.

    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(SPEC_MD)
    sections = _sections(read_lines(SPEC_MD, text, faults), SECTION_LABELS)
    for name in SECTIONS:
        if name not in sections:
            faults.add(1, f"needs the section {name!r}")
    five_w = _labelled(sections.get("5w2h"), FIVE_LABELS, FIVE_W, faults)
    stories = _stories(sections.get("stories"), faults)
    requirements = _requirements(sections.get("requirements"), stories, faults)
    criteria = _criteria(sections.get("success"), faults)
    smart = _smart(sections.get("smart"), faults)
    faults.check()
    return Specification(five_w, tuple(stories), tuple(requirements), criteria, smart)


def _sections(lines: Sequence[Line], labels: Mapping[str, str]) -> dict[str, _Section]:
    """Cut a document into its known sections of the second level."""
    found: dict[str, _Section] = {}
    current: _Section | None = None
    for line in lines:
        heading = heading_of(line)
        if heading is not None and heading.level <= 2:
            name = labels.get(folded(heading.text).lstrip("0123456789.、) "))
            if name is None:
                name = labels.get(folded(heading.text))
            current = _Section(heading) if name is not None and heading.level == 2 else None
            if current is not None and name is not None:
                found.setdefault(name, current)
        elif current is not None:
            current.lines.append((line, heading))
    return found


def _labelled(
    section: _Section | None,
    labels: Mapping[str, str],
    wanted: Mapping[str, Sequence[str]],
    faults: Faults,
) -> dict[str, str]:
    """Read a section of labelled lines, each label once, none empty."""
    found: dict[str, str] = {}
    current = ""
    for line, _ in section.lines if section is not None else ():
        named = field_of(line, labels)
        if named is not None:
            current = named[0]
            found.setdefault(current, named[1])
        elif current and line.raw.strip():
            found[current] = f"{found[current]}\n{line.raw.strip()}".strip()
    if section is not None:
        for name in wanted:
            if not found.get(name):
                faults.add(section.heading.line, f"{name!r} is missing or empty")
    return found


def _stories(section: _Section | None, faults: Faults) -> list[Story]:
    stories: list[Story] = []
    for line, heading in section.lines if section is not None else ():
        if heading is not None and heading.level == 3:
            story = _story(heading, stories, faults)
            if story is not None:
                stories.append(story)
        elif stories and not line.is_fenced:
            _read_scenario(line, stories[-1], faults)
    for one in stories:
        if not SCENARIOS_LEAST <= len(one.scenarios) <= SCENARIOS_MOST:
            count = len(one.scenarios)
            faults.add(one.line, f"story {one.number} has {count} acceptance scenarios, not 3 to 5")
        if not one.failures:
            faults.add(one.line, f"story {one.number} has no failure path")
    if section is not None and not stories:
        faults.add(section.heading.line, "has no story (`### Story 1 (P1): …`)")
    return stories


def _story(heading: Heading, known: Sequence[Story], faults: Faults) -> Story | None:
    found = STORY.match(heading.text)
    if found is None:
        faults.add(heading.line, "is no story; write `### Story 1 (P1): title`")
        return None
    number = int(found[1])
    rank = PRIORITY.search(f" {found[2]}".replace("（", "(").replace("【", "["))
    if rank is None:
        faults.add(heading.line, f"story {number} needs a priority, P1 to P3")
    if any(one.number == number for one in known):
        faults.add(heading.line, f"story {number} stands there already")
    title = PRIORITY_LEFT.sub("", found[2]).strip(" ():：（）[]-")
    return Story(number, title, int(rank[1]) if rank else 3, heading.line)


def _read_scenario(line: Line, story: Story, faults: Faults) -> None:
    """Read `- Condition: …; Action: …; Expected: …`, or `- Failure: …`."""
    listed = LISTED.match(line.plain)
    if listed is None:
        return
    parts: dict[str, str] = {}
    for piece in PARTS.split(listed[1]):
        label, colon, value = piece.partition(":")
        name = SCENARIO_LABELS.get(folded(label)) if colon else None
        if name is not None:
            parts.setdefault(name, value.strip())
    if parts.get("failure"):
        story.failures.append(parts["failure"])
        return
    wanted = ("condition", "action", "expected")
    if not parts:
        return
    missing = [name for name in wanted if not parts.get(name)]
    if missing:
        faults.add(line.number, f"the scenario lacks {', '.join(missing)}")
    story.scenarios.append((parts.get("condition", ""), parts.get("action", ""),
                            parts.get("expected", "")))  # fmt: skip


def _requirements(
    section: _Section | None, stories: Sequence[Story], faults: Faults
) -> list[Requirement]:
    found: list[Requirement] = []
    known = {one.number for one in stories}
    seen: dict[str, int] = {}
    for line, _ in section.lines if section is not None else ():
        named = None if line.is_fenced else REQUIREMENT.match(line.plain)
        if named is None:
            continue
        name, of = named[1], OF_STORY.search(named[2])
        if re.fullmatch(r"FR-\d{3}", name) is None:
            faults.add(line.number, f"a requirement is named FR-001; not {name}")
        if name in seen:
            faults.add(line.number, f"{name} stands on line {seen[name]} already")
        seen.setdefault(name, line.number)
        if of is None or int(of[1]) not in known:
            faults.add(line.number, f"{name} names no story of this document ([story 1])")
        rest = named[2][of.end() :] if of is not None else named[2]
        if not rest.strip(" :"):
            faults.add(line.number, f"{name} says nothing")
        found.append(Requirement(name, int(of[1]) if of else 0, rest.strip(" :"), line.number))
    if section is not None and not found:
        faults.add(section.heading.line, "has no requirement (`- FR-001 [story 1] …`)")
    covered = {one.story for one in found}
    for one in stories if section is not None else ():
        if one.number not in covered:
            faults.add(one.line, f"story {one.number} has no requirement")
    return found


def _criteria(section: _Section | None, faults: Faults) -> dict[str, str]:
    found: dict[str, str] = {}
    for line, _ in section.lines if section is not None else ():
        named = None if line.is_fenced else CRITERION.match(line.plain)
        if named is None:
            continue
        if named[1] in found or re.fullmatch(r"SC-\d{3}", named[1]) is None:
            faults.add(line.number, f"{named[1]} is given twice or is not named SC-001")
        if not named[2].strip():
            faults.add(line.number, f"{named[1]} says nothing")
        found[named[1]] = named[2].strip()
    if section is not None and not found:
        faults.add(section.heading.line, "has no success criterion (`- SC-001 …`)")
    return found


def _smart(section: _Section | None, faults: Faults) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for line, _ in section.lines if section is not None else ():
        named = None if line.is_fenced else SMART_BOX.match(line.plain)
        name = SMART_LABELS.get(folded(named[2])) if named is not None else None
        if named is not None and name is not None:
            found[name] = named[1] in ("x", "X")
    for name in SMART if section is not None else ():
        if section is not None and name not in found:
            faults.add(section.heading.line, f"the check list lacks `- [ ] {name}`")
    return found


DESIGN_SECTIONS: Mapping[str, Sequence[str]] = {
    "c4": ("c4 levels", "c4 model", "c4 层次", "c4 模型", "架构层次"),
    "modules": ("modules and interfaces", "module", "模块", "模块划分", "模块与接口"),
    "interfaces": (
        "interface definitions",
        "接口",
        "接口定义",
        "模块与接口",
        "modules and interfaces",
    ),
    "data model": ("data models", "数据模型"),
    "decisions": ("adr", "adrs", "architecture decisions", "架构决策", "决策记录"),
}
C4_LEVELS: Mapping[str, Sequence[str]] = {
    "context": ("system context", "系统上下文", "上下文"),
    "container": ("containers", "容器"),
    "component": ("components", "组件"),
}
ADR = re.compile(r"ADR-\d{1,4}\b(.*)", re.IGNORECASE)
ADR_FIELDS: Mapping[str, Sequence[str]] = {
    "context": ("背景", "上下文"),
    "options": ("option", "可选方案", "选项", "方案"),
    "choice": ("decision", "选择", "决定", "决策"),
    "trade-off": ("trade-offs", "tradeoff", "consequences", "权衡", "取舍", "后果"),
}
ADR_LABELS = labels_of(ADR_FIELDS)


def check_tech_md(text: str) -> int:
    """Check `tech.md`: C4 levels, modules, interfaces, data model, and at least one decision.

    Return how many decisions it records.
    Errors: DocumentInvalid listing each fault with its line.
    """
    faults = Faults(TECH_MD)
    lines = read_lines(TECH_MD, text, faults)
    found: dict[str, _Section] = {}
    for name, labels in DESIGN_SECTIONS.items():
        section = _sections(lines, labels_of({name: labels})).get(name)
        if section is None:
            faults.add(1, f"needs the section {name!r}")
        elif not any(line.raw.strip() for line, _ in section.lines):
            faults.add(section.heading.line, f"the section {name!r} is empty")
        else:
            found[name] = section
    _check_levels(found.get("c4"), faults)
    count = sum(1 for _ in _decisions(found.get("decisions"), faults))
    faults.check()
    return count


def _check_levels(section: _Section | None, faults: Faults) -> None:
    if section is None:
        return
    said = folded(" ".join(line.plain for line, _ in section.lines))
    for name, labels in C4_LEVELS.items():
        if not any(folded(one) in said for one in (name, *labels)):
            faults.add(section.heading.line, f"the C4 level {name!r} is missing")


def _decisions(section: _Section | None, faults: Faults) -> Iterator[Heading]:
    """Read the decisions, each with context, options, choice and trade-off."""
    if section is None:
        return
    blocks: list[tuple[Heading, dict[str, str]]] = []
    for line, heading in section.lines:
        if heading is not None and heading.level == 3 and ADR.match(heading.text):
            blocks.append((heading, {}))
        elif blocks:
            named = field_of(line, ADR_LABELS)
            if named is not None:
                blocks[-1][1].setdefault(named[0], named[1])
    if not blocks:
        faults.add(section.heading.line, "has no decision (`### ADR-001 title`)")
    for heading, given in blocks:
        missing = [name for name in ADR_FIELDS if name not in given]
        if missing:
            faults.add(heading.line, f"{heading.text[:60]} lacks {', '.join(missing)}")
        yield heading
