"""What checks and limits say is read in the reader's language; commands and names stay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.utils import translation

from dashboard.check_texts import FIXED, check_words, over_budget_words
from orchestration.models import Project
from orchestration.rules.spoken_marks import UNCHECKED
from orchestration.services.layers import NO_CROSS_VERIFIER
from tests.api.callers import session_client
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    submit_plan,
)
from tests.services.test_budgets import beat
from tests.services.test_outer_layers import RISKY, done_step

BASE = Path(__file__).resolve().parents[2]
CHINESE = re.compile(r"[一-鿿]")


def test_every_fixed_text_is_one_that_the_code_writes() -> None:
    own = BASE / "dashboard/check_texts.py"
    whole = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (BASE / "orchestration").rglob("*.py")
        if path != own
    )
    kinds = {f"nothing here says how to {kind}" for kind in ("build", "test")}
    assert [text for text in FIXED if f'"{text}"' not in whole and text not in kinds] == []


@pytest.mark.parametrize("reason", sorted(UNCHECKED))
def test_every_reason_that_a_claim_was_not_checked_is_said_in_chinese(reason: str) -> None:
    params = {"path": "a.py", "detail": "words of the system", "what": "build", "tool": "go",
              "command": "make test", "outcome": "timed_out"}  # fmt: skip
    written = UNCHECKED[reason] % params
    with translation.override("zh-hans"):
        said = check_words(written)
    assert bool(CHINESE.search(said)) == (reason != "unreadable")


@pytest.mark.parametrize(
    ("written", "chinese"),
    [
        ("the text has no note [^1]", "正文没有脚注 [^1]"),
        ("report.md was handed in", "report.md 已提交"),
        ("data is a folder", "data 是文件夹"),
        (f"L4: {NO_CROSS_VERIFIER}", "L4：无法核对：没有独立的智能体可做交叉验证"),
        (
            "claimed 12 passed, 0 failed; ran 3 passed, 1 failed",
            "声称 12 个通过、0 个失败；实际 3 个通过、1 个失败",
        ),
        (
            "L3: 2 claims name a command of their agent's own; "
            "not possible: not on the project's list of allowed commands",
            "L3：2 条声明指定了智能体自己的命令；无法核对：不在项目的允许命令清单上",
        ),
        ("an agent's own words", "an agent's own words"),
    ],
)
def test_findings_in_chinese(written: str, chinese: str) -> None:
    with translation.override("zh-hans"):
        assert check_words(written) == chinese
    with translation.override("en"):
        assert not CHINESE.search(check_words(written))


def test_figures_over_their_limits_in_both_languages() -> None:
    over: dict[str, dict[str, float]] = {
        "turns": {"used": 31, "limit": 30},
        "cost_usd": {"used": 5.5, "limit": 5},
    }
    with translation.override("en"):
        assert over_budget_words(over) == "turns 31 of 30, cost 5.5 of 5 USD"
    with translation.override("zh-hans"):
        assert over_budget_words(over) == "轮次 31，上限 30、费用 5.5 美元，上限 5 美元"


def card_of(kind: str, project: Project) -> str:
    """The page of the one open item of a kind, in Chinese."""
    client = session_client()
    client.cookies["django_language"] = "zh-hans"
    page: bytes = client.get(f"/inbox/{open_decision_of(project, kind).pk}/").content
    return page.decode()


@pytest.mark.django_db
def test_caveats_of_a_final_review_are_chinese_on_a_chinese_page() -> None:
    project = new_project()
    done_step(project, **RISKY)
    page = card_of("final_review", project)
    assert "L4：无法核对：没有独立的智能体可做交叉验证" in page
    assert NO_CROSS_VERIFIER not in page


@pytest.mark.django_db
def test_line_of_what_is_over_budget_is_chinese_on_a_chinese_page() -> None:
    project = new_project()
    agent = new_agent(project=project)
    root = submit_plan(project, agent_step("1"))
    drive(project)
    held = claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    beat(held, agent, turns=31)
    page = card_of("budget_exceeded", project)
    assert "轮次 31，上限 30" in page
    assert "turns 31 of 30" not in page
