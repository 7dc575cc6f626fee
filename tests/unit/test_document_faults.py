"""Every kind of fault that the workflows' documents can have, each refused with its line.

The commoner ones stand in `test_flow_documents`; a change of one place of a good document here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestration.rules.box_lists import MAX_TASK_ITEMS, parse_plan_md, parse_task_md
from orchestration.rules.marked_text import MAX_LINE_CHARACTERS, DocumentInvalid
from orchestration.rules.proposals import parse_proposal_md
from orchestration.rules.spec_documents import check_tech_md, parse_spec_md
from orchestration.rules.test_guides import parse_test_guide
from tests.flows.scripts import PROPOSAL, SPEC, TASK_LIST, TECH, box, plan_md

PLAN = plan_md("add-it")
GUIDE = (
    "# Guide\n\n## Runnability commands\n\n`make run`\n\n## Case management\n\nOne file a module.\n"
    "\n## Test commands\n\n```\nmake test\n```\n"
)
LONG = "x" * (MAX_LINE_CHARACTERS + 1)
MANY = "".join(box(f"1.{n}", f"part {n}") for n in range(1, MAX_TASK_ITEMS + 2))
HEAD = "# Tasks\n\n## Implementation\n\n"
SAME = (
    "- Condition: an account; Action: wrong password; Expected: refused\n"
    "- Condition: no account; Action: any password; Expected: refused in the same words\n"
)
CASES: list[tuple[Callable[[str], object], str, str, str, str]] = [
    (parse_task_md, TASK_LIST, "  - Method: new code\n", "  - Purpose: x\n  - Method: new code\n",
     "line 8: gives the field purpose a second time"),
    (parse_task_md, TASK_LIST, "  - Target object: calc.py\n", "  loose words\n",
     "line 6: is no labelled field"),
    (parse_task_md, TASK_LIST, TASK_LIST, HEAD, "line 1: has no box"),
    (parse_task_md, TASK_LIST, TASK_LIST, HEAD + MANY,
     f"line {5 + 6 * MAX_TASK_ITEMS}: has 101 boxes; at most 100 are allowed"),
    (parse_task_md, TASK_LIST, "write add", LONG, "line 10: is longer than 4000 characters"),
    (parse_plan_md, PLAN, PLAN, " \n.", "line 1: has no box"),
    (parse_plan_md, PLAN, "FR-003", "FR-001", "line 8: FR-001 is covered by box 1 already"),
    (parse_proposal_md, PROPOSAL, "## Impact", "## Feelings\n\n## Impact",
     "line 12: 'Feelings' is no section of a proposal"),
    (parse_proposal_md, PROPOSAL, "## Impact", "## Changes\n\n## Impact",
     "line 12: 'Changes' is no section of a proposal"),
    (parse_proposal_md, PROPOSAL,
     "- A module that adds and subtracts\n- **BREAKING** the old script goes\n", "",
     "line 7: lists no change"),
    (parse_proposal_md, PROPOSAL, "People reckon by hand. That is slow.\n", "",
     "line 3: the reason has 0 sentences"),
    (parse_proposal_md, PROPOSAL, "## Reason", "Why:", "line 1: needs the section 'reason'"),
    (parse_proposal_md, PROPOSAL, "## Changes", "Changes:", "line 1: needs the section 'changes'"),
    (parse_spec_md, SPEC, SAME, "", "line 15: story 1 has 1 acceptance scenarios, not 3 to 5"),
    (parse_spec_md, SPEC, SAME, SAME * 3, "line 15: story 1 has 7 acceptance scenarios"),
    (parse_spec_md, SPEC, "### Story 1 (P1): sign in", "### A tale", "line 15: is no story"),
    (parse_spec_md, SPEC, "### Story 2 (P2)", "### Story 1 (P2)",
     "line 22: story 1 stands there already"),
    (parse_spec_md, SPEC, SPEC[SPEC.index("### Story 1"):SPEC.index("## Requirements")], "",
     "line 13: has no story"),
    (parse_spec_md, SPEC, "- FR-003", "- FR-3", "line 33: a requirement is named FR-001; not FR-3"),
    (parse_spec_md, SPEC, " It locks an account for ten minutes after five failures.", "",
     "line 33: FR-003 says nothing"),
    (parse_spec_md, SPEC, SPEC[SPEC.index("- FR-001"):SPEC.index("## Success")], "",
     "line 29: has no requirement"),
    (parse_spec_md, SPEC, "- FR-003 [story 2] It locks an account for ten minutes after five "
     "failures.\n", "", "line 22: story 2 has no requirement"),
    (parse_spec_md, SPEC, "- SC-001:", "- SC-001: one\n- SC-001:",
     "line 38: SC-001 is given twice or is not named SC-001"),
    (parse_spec_md, SPEC, "- SC-001:", "- SC-1:", "line 37: SC-1 is given twice or is not named"),
    (parse_spec_md, SPEC, " 95 % of sign-ins take under two seconds.", "",
     "line 37: SC-001 says nothing"),
    (check_tech_md, TECH, "- Account: name, digest, failures, locked_until\n", "",
     "line 15: the section 'data model' is empty"),
    (check_tech_md, TECH, TECH[TECH.index("### ADR-001"):], "None yet.\n",
     "line 19: has no decision"),
    (parse_test_guide, GUIDE, "## Runnability commands", "## Words",
     "line 1: needs the part 'runnability commands'"),
    (parse_test_guide, GUIDE, "## Case management", "## Words",
     "line 1: needs the part 'case management'"),
    (parse_test_guide, GUIDE, "```\nmake test\n```\n", "as you like\n",
     "line 11: the part 'test commands' names no command"),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "good", "old", "new", "said"), CASES)
def test_each_kind_of_fault_names_its_line(
    parse: Callable[[str], object], good: str, old: str, new: str, said: str
) -> None:
    parse(good)
    assert old in good
    with pytest.raises(DocumentInvalid) as caught:
        parse(good.replace(old, new, 1))
    found = [one["message"] for one in caught.value.errors]
    assert any(one.startswith(said) for one in found), found


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"change": "other-it"}, "line 1: change id must be other-it"),
        ({"spec": ".cospec/spec/other/spec.md"}, "line 1: spec path must be"),
        ({"design": ".cospec/spec/other/tech.md"}, "line 1: design path must be"),
        ({"requirements": ["FR-001", "FR-002"]},
         "line 8: FR-003 is no requirement of the specification"),
        ({"requirements": ["FR-001", "FR-002", "FR-003", "FR-004"]},
         "line 1: FR-004 is covered by no box"),
    ],
)  # fmt: skip
def test_plan_md_is_held_against_what_it_comes_from(known: dict[str, object], said: str) -> None:
    parse_plan_md(PLAN, requirements=["FR-001", "FR-002", "FR-003"], change="add-it")
    with pytest.raises(DocumentInvalid) as caught:
        parse_plan_md(PLAN, **known)  # type: ignore[arg-type]
    found = [one["message"] for one in caught.value.errors]
    assert any(one.startswith(said) for one in found), found
