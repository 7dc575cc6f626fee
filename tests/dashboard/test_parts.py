"""The template parts: they render whole, in both languages, and hold what UI.md asks of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import translation

from dashboard.assessments import red_line_view
from dashboard.cards import closed_card
from dashboard.presenters import exit_label, layer_view, mark_view, output_view, trust_view
from dashboard.shapes import Banner, Crumb, KeyGroup, KeyLine, MarkView, Progress
from dashboard.vocabulary import (
    ASSIGNMENT_LABELS,
    AUDIT_OVERRIDDEN,
    DECISION_LABELS,
    DEFECT_LABELS,
    MARK_LABELS,
    PACKAGE_LABELS,
    PLAN_LABELS,
    PROJECT_LABELS,
    SEVERITY_LABELS,
    SKIPPED,
    TASK_LABELS,
    Role,
)
from orchestration.policy import DEFAULT_POLICY
from orchestration.states import Severity, TaskStatus
from tests.dashboard import samples, samples_board

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "templates/dashboard/_parts"
LANGUAGES = ("en", "zh-hans")

pytestmark = pytest.mark.urls("tests.dashboard.sample_urls")


def in_chinese(kind: str) -> MarkView:
    """A mark as a Chinese reader sees it."""
    with translation.override("zh-hans"):
        return mark_view(kind)


def parts_context() -> dict[str, Any]:
    """Everything the parts page shows."""
    card = closed_card(
        id="7", verdict="approve", who="Sir", at=samples.NOW,
        reason="v2 照此修复，下一轮请补 HOLD 超时。", version=2, digest=samples.DIGEST,
        outcome="Approved. Fix round 2 of 3 starts.", next_url="/next/",
    )  # fmt: skip
    lost = "Connection lost 34 s ago. What you see is from 15:02:14. You can still read and type."
    changed = "This item changed while you read it. A new one took its place."
    return {
        "columns": [
            [("Task", [*TASK_LABELS.values(), SKIPPED])],
            [("Defect", DEFECT_LABELS.values()), ("Package", PACKAGE_LABELS.values())],
            [("Assignment", ASSIGNMENT_LABELS.values()), ("Project", PROJECT_LABELS.values())],
            [
                ("Plan", [*PLAN_LABELS.values(), AUDIT_OVERRIDDEN]),
                ("Decision", DECISION_LABELS.values()),
            ],
        ],
        "severities": SEVERITY_LABELS.values(),
        "connections": [("live", ""), ("catching", ""), ("offline", "Last update 34 s ago")],
        "marks": [(mark_view(kind), in_chinese(kind)) for kind in MARK_LABELS],
        "banners": [
            Banner(lost, "plug-connected-x"),
            Banner(changed, "refresh", "amber", "Open it", "/new/"),
        ],
        "travels": samples.sample_travels(),
        "card": card,
        "nav": samples.sample_navigation("parts"),
        "crumbs": [Crumb("Parts")],
    }


def drawn_context() -> dict[str, Any]:
    """What the drawn parts show."""
    bands = samples_board.sample_bands()
    files = samples.sample_diff().files
    return {
        "output": samples.sample_output(),
        "diff": samples.sample_diff(),
        "file": files[0],
        "line": files[0].hunks[0].unified[0].rows[0],
        "rounds": samples.sample_rounds(),
        "impact": samples.sample_impact(),
        "score": samples_board.sample_score(),
        "bands": bands,
        "node": bands[0].nodes[0],
        "gantt": samples_board.sample_gantt(),
        "lines": samples_board.sample_log(),
        "stages": samples_board.sample_stages(),
        "progress": Progress(3, 9, "3 of 9 done"),
        "trust": trust_view(0.83, 0.5),
        "layers": [layer_view("L1", "passed"), layer_view("L4", "not_possible", "no agent")],
    }


def part_context() -> dict[str, Any]:
    """One context that fills every part."""
    dock, keys = samples.sample_dock(), [KeyLine(["j", "k"], "move")]
    return {
        **parts_context(),
        **drawn_context(),
        "label": TASK_LABELS[TaskStatus.WORKING],
        "mark": mark_view("agent_verified", "<b>12 passed</b>"),
        "marks": [mark_view(kind, "claim") for kind in MARK_LABELS],
        "row": samples.sample_groups()[1].rows[0],
        "group": samples.sample_groups()[1],
        "groups": [KeyGroup("Inbox", keys)],
        "keys": keys,
        "dock": dock,
        "verdict": dock.verdicts[3],
        "reason": "<script>alert(1)</script>",
        "back_url": "/back/",
        "extra": {"amount": "5"},
        "id": "7",
        "new_url": "/new/",
        "outcome": "Not signed",
        "steps": ["2a"],
        "download_url": "/log.txt",
        "banner": Banner("Lost", "refresh"),
        "title": "Proposed fix",
        "text": "New items appear here.",
        "version": 2,
        "digest": samples.DIGEST,
        "count": 9,
    }


OWN_CONTEXT: dict[str, dict[str, Any]] = {
    "band.html": {"band": samples_board.sample_bands()[0]},
    "band_head.html": {"band": samples_board.sample_bands()[0]},
    "log_line.html": {"line": samples_board.sample_log()[0]},
    "master_row.html": {"row": samples_board.sample_master()[0]},
    "same_as.html": {"number": 2},
    "red_line.html": {"red": red_line_view("Delete the production database", DEFAULT_POLICY)},
    "severity.html": {"label": SEVERITY_LABELS[Severity.MEDIUM]},
}


def render_part(name: str, language: str = "en", **context: Any) -> str:
    """Render one part with the full context, changed by the arguments."""
    request = RequestFactory().get("/somewhere/")
    filled = part_context() | OWN_CONTEXT.get(name, {}) | context
    with translation.override(language), time_machine.travel(samples.NOW, tick=False):
        return render_to_string(f"dashboard/_parts/{name}", filled, request=request)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(path.name for path in PARTS.glob("*.html")))
def test_every_part_renders_whole(name: str, language: str) -> None:
    html = render_part(name, language)
    assert html.strip()
    assert "{{" not in html
    assert "{%" not in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_parts_page_shows_every_word_of_the_vocabulary(language: str) -> None:
    request = RequestFactory().get("/parts/")
    with translation.override(language), time_machine.travel(samples.NOW, tick=False):
        html = render_to_string("dashboard/parts.html", parts_context(), request=request)
        for label in (*TASK_LABELS.values(), *DEFECT_LABELS.values(), *PLAN_LABELS.values()):
            assert f"<span>{label.word}</span>" in html
    assert f'<html lang="{language}"' in html


def test_only_what_waits_for_sir_is_a_filled_pill() -> None:
    tables = (TASK_LABELS, DEFECT_LABELS, DECISION_LABELS, PROJECT_LABELS, PLAN_LABELS)
    pills = {
        str(label.word)
        for table in tables
        for label in table.values()
        if "state--pill" in render_part("status.html", label=label)
    }
    assert pills == {"Waiting for you"}


def test_agent_text_is_escaped() -> None:
    assert "&lt;b&gt;12 passed&lt;/b&gt;" in render_part("mark.html")
    assert "<script>alert" not in render_part("confirm_page.html")


def test_every_verdict_shows_its_consequences_as_its_description() -> None:
    html = render_part("verdict_dock.html")
    described = re.findall(r'aria-describedby="(what-[^"]+)"', html)
    assert len(described) == 4
    for id in described:
        block = re.search(rf'id="{id}">(.*?)</ul>', html, re.DOTALL)
        assert block is not None
        assert block.group(1).count("<li>") == 3


def test_the_dock_signs_version_and_digest_by_post() -> None:
    html = render_part("verdict_dock.html")
    assert 'method="post"' in html
    assert '<input type="hidden" name="version" value="2">' in html
    assert f'name="digest" value="{samples.DIGEST}"' in html
    assert "csrfmiddlewaretoken" in html
    assert "sha256 9f2c41d7…e08b" in html


def test_destructive_verdicts_are_marked_for_the_second_question() -> None:
    html = render_part("verdict_dock.html")
    asked = re.findall(r'value="(\w+)"[^>]*data-destructive', html)
    assert asked == ["reject"]
    assert "A verdict is final. There is no undo." in html


def test_content_that_cannot_be_shown_disables_the_clean_yes_and_says_why() -> None:
    dock = samples.sample_dock()
    blocked = render_part("verdict_dock.html", dock=_blocked(dock))
    assert re.search(r'value="approve"[^>]* disabled', blocked)
    assert not re.search(r'value="reject"[^>]* disabled', blocked)
    assert "The diff is missing." in blocked


def _blocked(dock: Any) -> Any:
    return type(dock)(
        **{name: getattr(dock, name) for name in dock.__slots__}
        | {"blocked_reason": "The diff is missing."}
    )


def test_a_row_that_travels_shows_its_note_and_no_tick_box() -> None:
    signing, signed, refused, changed = samples.sample_travels()
    assert "Signing: approve the fix" in render_part("inbox_row.html", row=signing)
    assert "15:02" in render_part("inbox_row.html", row=signed)
    for row in (refused, changed):
        html = render_part("inbox_row.html", row=row)
        assert "Not signed" in html
        assert "checkbox" not in html


def test_stopped_projects_have_no_tick_box_and_a_red_p0() -> None:
    html = render_part("inbox_row.html", row=samples.sample_groups()[0].rows[0])
    assert "checkbox" not in html
    assert '<span class="row-p0">P0</span>' in html


def test_times_carry_their_exact_value() -> None:
    html = render_part("inbox_row.html")
    assert 'datetime="2026-11-30T11:58:14+00:00"' in html
    assert 'title="2026-11-30 11:58:14+00:00" data-age="age">3 h</time>' in html


def test_unknown_trust_is_the_word_unknown() -> None:
    html = render_part("trust.html", trust=trust_view(None, None))
    assert html.count("unknown") == 2
    assert "0.00" not in html


def test_trust_bands_go_by_the_proven_figure() -> None:
    bands = [trust_view(1.0, proven).band for proven in (0.33, 0.34, 0.74, 0.75)]
    assert bands == ["low", "partial", "partial", "high"]


def test_output_keeps_every_line_behind_one_button() -> None:
    text = "\n".join(f"line {n}" for n in range(1, 101))
    output = output_view(text, title="TC", exit_code=0)
    html = render_part("output.html", output=output)
    assert "Show all 100 lines" in html
    assert [int(n) for n in re.findall(r">line (\d+)<", html)] == list(range(1, 101))


def test_exit_codes_are_green_only_at_zero() -> None:
    codes = {code: exit_label(code) for code in (0, 1, 124)}
    assert [label.role for label in codes.values() if label] == [Role.GREEN, Role.RED, Role.RED]
    assert exit_label(None) is None


def test_icons_of_parts_and_tables_are_in_the_sprite() -> None:
    sprite = set(re.findall(r'symbol id="([^"]+)"', (ROOT / "static/icons.svg").read_text()))
    assert set(_icons_used()) <= sprite


def _icons_used() -> Iterator[str]:
    for path in (ROOT / "templates").rglob("*.html"):
        yield from re.findall(r'{% icon "([\w-]+)"', path.read_text(encoding="utf-8"))
    for name in ("vocabulary", "verdicts", "presenters", "cards"):
        text = (ROOT / f"dashboard/{name}.py").read_text(encoding="utf-8")
        found = re.findall(r'(?:_label|Label|KindWords)\(\s*"([\w-]+)"', text)
        assert found or name in ("presenters", "cards")
        yield from found


@pytest.mark.parametrize("code", ["403", "404", "500"])
def test_error_pages_keep_the_shell_without_any_context(code: str) -> None:
    html = render_to_string(f"{code}.html", {})
    assert 'class="brand"' in html
    assert "data-socket" not in html


def test_sign_in_has_named_fields_and_a_csrf_token() -> None:
    html = render_to_string("registration/login.html", {}, request=RequestFactory().get("/"))
    assert 'autocomplete="current-password"' in html
    assert "csrfmiddlewaretoken" in html
