"""What each workflow consists of: stages, profiles, documents and where they stand.

Source: DESIGN section 11 ("Workflows"), FORMATS, source document 004 sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestration.contracts.flow_results import CheckName
from orchestration.rules.box_lists import PLAN_MD as PLAN_MD
from orchestration.rules.box_lists import TASK_MD as TASK_MD
from orchestration.rules.proposals import PROPOSAL_MD as PROPOSAL_MD
from orchestration.rules.spec_documents import SPEC_MD as SPEC_MD
from orchestration.rules.spec_documents import TECH_MD as TECH_MD

STRICT_PLAN, STRICT_SPEC = "strict-plan", "strict-spec"
TEST, REVIEW_SECURITY = "test", "review-security"
TEST_GUIDE_MD = "TEST_GUIDE.md"

UNDERSTAND, EXPLORE, CLARIFY, PROPOSE = "understand", "explore", "clarify", "propose"
REQUIREMENT, DESIGN, PLAN, IMPLEMENT = "requirement", "design", "plan", "implement"
RUN, PREPARE, CONFIRM, TEST_DESIGN, TEST_FIX = (
    "run",
    "prepare",
    "confirm",
    "test-design",
    "test-fix",
)
SECURITY = "security"

ORCHESTRATORS = frozenset({"StrictPlan", "StrictSpec"})
TASK_CHECK = "TaskCheck"
CHECKS = tuple(one.value for one in CheckName)
DOCUMENTS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("StrictPlan", PROPOSE): (PROPOSAL_MD, TASK_MD),
        ("Requirement", REQUIREMENT): (SPEC_MD,),
        ("DesignAgent", DESIGN): (TECH_MD,),
        ("TaskPlan", PLAN): (PLAN_MD,),
        ("TddTestPrepare", PREPARE): (TEST_GUIDE_MD,),
    }
)
"""What a stage hands in, by profile and step."""
BOXES: Mapping[str, str] = MappingProxyType({STRICT_PLAN: TASK_MD, STRICT_SPEC: PLAN_MD})
"""The document whose boxes become SubCoding tasks."""
ASKS_SIR = frozenset({("StrictPlan", CLARIFY), ("TddTestPrepare", CONFIRM)})
"""Stages that are over only when Sir has answered a question of theirs."""


def directory_of(name: str, change_id: str) -> str:
    """Say where the documents of a change stand in the workspace."""
    if name == STRICT_PLAN:
        return f".cospec/plan/changes/{change_id}"
    return f".cospec/spec/{change_id}" if name == STRICT_SPEC else ".cospec"


def document_path(directory: str, name: str) -> str:
    """Say where one document of a change stands."""
    return f"{directory}/{name}"


def is_box_plan(role: str, step_key: str) -> bool:
    """Whether a step is planned from the boxes of a document, one SubCoding task a box."""
    return step_key == IMPLEMENT and role in ORCHESTRATORS


def judge_of(role: str, step_key: str) -> str:
    """Say which profile judges a stage in the seat of QA; nothing where any backend may."""
    if (role, step_key) == ("StrictPlan", PROPOSE):
        return TASK_CHECK
    return "QuickExplore" if (role, step_key) == ("QuickExplore", SECURITY) else ""


def runs_tests(role: str) -> bool:
    """Whether a profile is one of those that make and run tests."""
    return role.startswith("Tdd")


def is_run_by_us(role: str, step_key: str) -> bool:
    """Whether the system itself runs the tests that a stage hands in."""
    return (role, step_key) in {("TddTestDesign", TEST_DESIGN), ("TddTestAndFix", TEST_FIX)}


def is_confirmed_by_sir(role: str) -> bool:
    """Whether Sir looks at a profile's work once before it is locked: the design."""
    return role == "DesignAgent"
