"""Documents of the workflows: what is read, and what is refused, with the line."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.errors import Fault
from orchestration.rules.box_lists import (
    BoxList,
    parse_plan_md,
    parse_task_md,
    render_plan_md,
    render_task_md,
    tick_item,
)
from orchestration.rules.change_names import change_id_fault, change_id_of, unique_name
from orchestration.rules.marked_text import BOM, MAX_BYTES, MAX_LINES, DocumentInvalid
from orchestration.rules.proposals import parse_proposal_md, render_proposal_md
from orchestration.rules.spec_documents import check_tech_md, parse_spec_md
from orchestration.rules.test_guides import parse_test_guide
from tests.flows.scripts import PROPOSAL, SPEC, TASK_LIST, TECH, plan_md

CHINESE = """# 任务

## 实施

- ［　］ 1.1 建立计算模块
  【目标对象】`calc.py`
  【修改目的】提供加减
  【修改方式】新增文件
  【相关依赖】无
  【修改内容】
    - 新增 add
    - [ ] 9.9 这一行只是内容
- [ ] 1.2 编写测试
  【目标对象】：tests
  - **修改目的**：检查
  - 修改方式：新增
  - 相关依赖：1.1
  - 修改内容：测试
"""
PARSERS = (parse_task_md, parse_plan_md, parse_proposal_md, parse_spec_md, check_tech_md,
           parse_test_guide)  # fmt: skip


def faults(parse: object, text: str, **known: object) -> list[str]:
    """What a parser says of a document."""
    with pytest.raises(DocumentInvalid) as caught:
        parse(text, **known)  # type: ignore[operator]
    return [one["message"] for one in caught.value.errors]


def test_chinese_labels_fullwidth_signs_and_nested_boxes_are_read() -> None:
    first, second = parse_task_md(CHINESE).items
    assert (first.number, first.title, first.is_done) == ("1.1", "建立计算模块", False)
    assert "9.9 这一行只是内容" in first.fields["content"]
    assert second.depends_on == ("1.1",)
    ticked = tick_item(CHINESE, first)
    assert ticked == CHINESE.replace("［　］", "［x］")
    assert parse_task_md(ticked).items[0].is_done


@pytest.mark.parametrize("head", ["", BOM])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tick_changes_one_sign_whatever_the_line_ends(head: str, end: str) -> None:
    text = head + TASK_LIST.replace("\n", end)
    item = parse_task_md(text).items[1]
    ticked = tick_item(text, item)
    assert [(a, b) for a, b in zip(text, ticked, strict=True) if a != b] == [(" ", "x")]
    assert [one.is_done for one in parse_task_md(ticked).items] == [False, True, False]
    assert tick_item(ticked, parse_task_md(ticked).items[1]) == ticked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: is empty"),
        (f"{BOM}\n \n", "line 1: is empty"),
        (TASK_LIST.replace("## Implementation", "## Other"), "line 1: needs the section `## Impl"),
        (TASK_LIST + "\n## Implementation\n", "line 24: only one section is allowed"),
        (TASK_LIST.replace("- [ ] 1.2", "- [] 1.2"), "line 11: a box is written [ ] or [x]"),
        (TASK_LIST.replace("- [ ] 1.2 sub", "- [ ] sub"), "line 11: a box needs a number"),
        (TASK_LIST.replace("- [ ] 1.2", "- [ ] 1.1"), "line 11: number 1.1 stands on line 5"),
        (TASK_LIST.replace("- [ ] 1.2", "- [ ] 2"), "line 11: number 2 must have the form n.m"),
        (TASK_LIST.replace("1.1, 1.2", "1.1, 7.7"), "line 17: depends on 7.7"),
        (TASK_LIST.replace("1.1, 1.2", "1.3"), "line 17: box 1.3 depends on itself"),
        (TASK_LIST.replace("1.1, 1.2", "soon"), "line 21: dependencies are numbers of boxes"),
        (TASK_LIST.replace("  - Method: new code\n", "", 1), "line 5: box 1.1 needs the field met"),
        (TASK_LIST.replace("  - Purpose: add", "loose words"), "line 7: belongs to no box"),
        (TASK_LIST + "\u202e evil\n", "line 23: holds a control or direction character"),
    ],
)
def test_task_md_names_the_line(text: str, said: str) -> None:
    found = faults(parse_task_md, text)
    assert any(one.startswith(said) for one in found), found


def test_cycle_of_boxes_is_named() -> None:
    text = TASK_LIST.replace("Dependencies: none", "Dependencies: 1.3", 1)
    assert "the boxes wait for each other: " in "".join(faults(parse_task_md, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Plan\n" + plan_md("add-it"), "line 1: belongs to no box"),
        (plan_md("add-it").replace("- [ ] 2.", "- [ ] 3."), "line 8: number 3 must be 2"),
        (plan_md("add-it").replace("  - Demonstration: sign in on the page\n", ""),
         "line 1: the first box must say how it is demonstrated"),
        (plan_md("Add It"), "line 1: change id 'Add It' is not kebab-case"),
        (plan_md("add-it").replace("FR-003", "FR-3"), "line 13: a requirement is named FR-001"),
        ("".join(plan_md("add-it").replace("2.", f"{one}.") for one in (2, 4)),
         "line 15: number 1 stands on line 1"),
    ],
)  # fmt: skip
def test_plan_md_names_the_line(text: str, said: str) -> None:
    found = faults(parse_plan_md, text)
    assert any(one.startswith(said) for one in found), found


def test_plan_has_at_most_three_boxes() -> None:
    item = parse_plan_md(plan_md("add-it")).items[1]
    one = render_plan_md([item]).replace("Dependencies: 1", "Dependencies: none")
    text = "".join(one.replace("] 2 ", f"] {number} ") for number in range(1, 5))
    assert any("at most 3 are allowed" in said for said in faults(parse_plan_md, text))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("- Why: their data is theirs\n", "", "line 3: 'why' is missing or empty"),
        ("(P1)", "", "line 15: story 1 needs a priority"),
        ("- Failure: the clock jumps\n", "", "line 22: story 2 has no failure path"),
        ("; Expected: locked for ten minutes", "", "line 24: the scenario lacks expected"),
        ("FR-002", "FR-001", "line 32: FR-001 stands on line 31 already"),
        ("[story 2]", "[story 7]", "line 33: FR-003 names no story"),
        ("- SC-001: 95 % of sign-ins take under two seconds.\n", "", "has no success criterion"),
        ("- [x] Achievable\n", "", "the check list lacks `- [ ] achievable`"),
        ("## Stories", "## Tales", "line 1: needs the section 'stories'"),
    ],
)
def test_spec_md_names_the_line(old: str, new: str, said: str) -> None:
    assert old in SPEC
    found = faults(parse_spec_md, SPEC.replace(old, new, 1))
    assert any(said in one for one in found), found


def test_spec_md_is_read() -> None:
    spec = parse_spec_md(SPEC)
    assert spec.requirement_ids == ("FR-001", "FR-002", "FR-003")
    assert [(one.number, one.priority, one.title) for one in spec.stories] == [
        (1, 1, "sign in"), (2, 2, "lock out"),
    ]  # fmt: skip
    assert spec.smart["measurable"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Component", "Part", "the C4 level 'component' is missing"),
        ("- Trade-off: one query a request\n", "", "lacks trade-off"),
        ("### ADR-001", "### Words", "has no decision"),
        ("## Data model", "## Data", "needs the section 'data model'"),
    ],
)
def test_tech_md_names_what_is_missing(old: str, new: str, said: str) -> None:
    assert check_tech_md(TECH) == 1
    assert any(said in one for one in faults(check_tech_md, TECH.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Add a calculator", "", "line 1: needs a title"),
        ("That is slow.", "It is slow. Very. So.", "the reason has 4 sentences"),
        ("**BREAKING** the", "a breaking change: the", "line 10: a change that breaks"),
        ("- Code: calc.py\n", "", "line 12: the impact says nothing of 'code'"),
        ("## Impact", "## Notes", "needs the section 'impact'"),
    ],
)
def test_proposal_names_the_line(old: str, new: str, said: str) -> None:
    found = faults(parse_proposal_md, PROPOSAL.replace(old, new, 1))
    assert any(said in one for one in found), found


def test_proposal_round_trips() -> None:
    proposal = parse_proposal_md(PROPOSAL)
    assert [is_breaking for _, is_breaking in proposal.changes] == [False, True]
    assert parse_proposal_md(render_proposal_md(proposal)) == proposal


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_BYTES + 1),
        "- [ ] 1.1 a\n" * (MAX_LINES + 1),
        "#" * 500_000,
        "- " * 400_000,
        "【" * 200_000,
        "\n".join(f"{' ' * (depth % 900)}- [ ] {depth % 999}.1 x" for depth in range(3_000)),
        "**a" * 1_300 + "\n" + "`" * 3_000,
        "\u202e\u2066\u0000",
        "```\n" * 5_001,
    ],
    ids=["large", "lines", "hashes", "dashes", "brackets", "nested", "stars", "hidden", "fences"],
)
def test_hostile_text_is_refused_with_bounded_faults(parse: object, text: str) -> None:
    assert 1 <= len(faults(parse, text)) <= 201


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.sampled_from(PARSERS))
def test_any_text_is_read_or_refused_with_a_line(text: str, parse: object) -> None:
    refused: list[Fault] = []
    try:
        parse(text)  # type: ignore[operator]
    except DocumentInvalid as error:
        refused = error.errors or [Fault(path="", message="nothing is named")]
    assert all(one["message"].startswith(("line ", "and ")) for one in refused)


WORDS = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.randoms())
def test_rendered_lists_are_read_back_and_ticked_one_by_one(
    titles: list[str], chance: random.Random
) -> None:
    text = "## Implementation\n" + "".join(
        f"- [ ] 1.{number} {title}\n  - Target: {title}\n  - Purpose: {title}\n"
        f"  - Method: {title}\n  - Dependencies: {f'1.{number - 1}' if number > 1 else 'none'}\n"
        f"  - Content: {title}\n"
        for number, title in enumerate(titles, start=1)
    )
    boxes = parse_task_md(text)
    again = parse_task_md(render_task_md(boxes.items))
    assert content(again) == content(boxes)
    for item in chance.sample(boxes.items, len(boxes.items)):
        text = tick_item(text, item)
    assert all(one.is_done for one in parse_task_md(text).items)


def content(boxes: BoxList) -> list[object]:
    """What a list says, wherever it stands."""
    return [(one.number, one.title, one.is_done, one.fields, one.depends_on)
            for one in boxes.items]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Add a login page", "add-login-page"),
        ("login page, please", "implement-login-page"),
        ("实现一个计算器", "implement-change-7"),
        ("", "implement-change-7"),
        ("Fix", "fix-change-7"),
        ("Añadir métricas", "implement-anadir-metricas"),
    ],
)
def test_change_ids_are_kebab_case_and_begin_with_a_verb(text: str, name: str) -> None:
    assert change_id_of(text, number=7) == name
    assert change_id_fault(name) == ""


def test_names_that_are_taken_get_a_number() -> None:
    assert unique_name("add-it", {"add-it", "add-it-2"}) == "add-it-3"
    assert change_id_fault("login-page").startswith("must begin with a verb")
    assert change_id_fault("Add_it").startswith("must be kebab-case")
