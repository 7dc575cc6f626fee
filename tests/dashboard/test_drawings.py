"""The drawn parts: layout, timeline, score scale, diff rows; and the weight of a page."""

from __future__ import annotations

import gzip
import hashlib
import random
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from dashboard.drawings import (
    HIGHEST_TOTAL,
    NODE_BOX,
    Link,
    Span,
    lay_out,
    make_axis,
    rank_steps,
    scale_parts,
)
from dashboard.highlighting import CodeLine, diff_set
from orchestration.rules.diffs import parse_diff
from tests.dashboard.samples import NOW, PATCH, sample_diff

STATIC = Path(__file__).resolve().parents[2] / "static"
PAGE_LIMIT_BYTES = 400_000


def random_dag(seed: int, size: int) -> tuple[list[str], list[Link]]:
    """A DAG whose links only point forward, the same for the same seed."""
    dice = random.Random(seed)
    keys = [f"{n:03d}" for n in range(size)]
    links = [
        Link(keys[dice.randrange(index)], keys[index])
        for index in range(1, size)
        for _ in range(dice.randrange(4))
    ]
    return keys, links


def test_nodes_never_overlap_and_links_run_from_left_to_right() -> None:
    keys, links = random_dag(7, 500)
    layout = lay_out(keys, links)
    columns: dict[int, list[int]] = {}
    for place in layout.places.values():
        columns.setdefault(place.x, []).append(place.y)
    for tops in columns.values():
        ordered = sorted(tops)
        gaps = [low - high for high, low in pairwise(ordered)]
        # A pixel may be lost to rounding, never a node.
        assert all(gap >= NODE_BOX.height + NODE_BOX.gap_y - 1 for gap in gaps)
    for link in links:
        assert layout.places[link.source].x < layout.places[link.target].x
    assert min(place.y for place in layout.places.values()) == 0


def test_layout_of_a_phase_is_the_same_each_time() -> None:
    keys, links = random_dag(3, 60)
    assert lay_out(keys, links) == lay_out(keys, links)


def test_rank_is_the_longest_path_and_a_cycle_does_not_hang() -> None:
    links = [Link("a", "b"), Link("b", "c"), Link("a", "c"), Link("x", "y"), Link("y", "x")]
    assert rank_steps(["a", "b", "c", "x", "y"], links) == {"a": 0, "b": 1, "c": 2, "x": 0, "y": 0}


def test_an_empty_phase_has_no_size() -> None:
    layout = lay_out([], [])
    assert (layout.width, layout.height, layout.edges) == (0, 0, ())


def test_bars_stand_inside_the_axis_and_short_ones_stay_visible() -> None:
    spans = [
        Span("work", NOW - timedelta(hours=6), NOW - timedelta(hours=3)),
        Span("running", NOW - timedelta(seconds=1), NOW),
    ]
    axis = make_axis(spans, NOW)
    long, short = (axis.bar(span) for span in spans)
    assert (long.x, long.width) == (0.0, 50.0)
    assert short.width >= 0.5
    assert short.x + short.width <= 100
    assert axis.now_x == 100.0
    assert 1 <= len(axis.ticks) <= 9


def test_a_finished_timeline_ends_with_its_last_span() -> None:
    ended = NOW - timedelta(hours=1)
    axis = make_axis([Span("work", ended - timedelta(minutes=4), ended)], NOW)
    assert (axis.end, axis.now_x) == (ended, None)


@pytest.mark.parametrize("minutes", [1, 4, 9])
def test_labels_of_a_short_axis_do_not_repeat(minutes: int) -> None:
    axis = make_axis([Span("running", NOW - timedelta(minutes=minutes), NOW)], NOW)
    assert axis.shows_seconds
    assert len({tick.at for tick in axis.ticks}) == len(axis.ticks) <= 6


def test_a_timeline_without_spans_still_has_an_axis() -> None:
    axis = make_axis([], NOW)
    assert axis.end - axis.start == timedelta(seconds=10)


def test_the_scale_is_cut_at_both_thresholds() -> None:
    parts, x = scale_parts(19, 8, 15)
    assert [part.route for part in parts if part.is_current] == ["three_step"]
    assert x == 70.0
    assert [scale_parts(total, 8, 15)[0][0].is_current for total in (5, 8, 9)] == [
        True,
        True,
        False,
    ]
    assert scale_parts(HIGHEST_TOTAL, 8, 15)[1] == 100.0


def lines_of(side: str) -> list[CodeLine]:
    """All lines of the sample diff in one view."""
    found: list[CodeLine] = []
    for file in sample_diff().files:
        for hunk in file.hunks:
            for chunk in getattr(hunk, side):
                for row in chunk.rows:
                    found.extend(
                        [row] if isinstance(row, CodeLine) else filter(None, (row.old, row.new))
                    )
    return found


def test_no_character_of_a_diff_is_lost_by_colouring() -> None:
    shown = [
        line.sign.replace("−", "-") + "".join(part.text for part in line.segments)
        for line in lines_of("unified")
    ]
    written = [
        line.removeprefix(" ")
        for line in PATCH.splitlines()
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert shown == written


def test_both_views_show_the_same_changes() -> None:
    def changed(side: str) -> list[str]:
        texts = (
            "".join(part.text for part in line.segments) for line in lines_of(side) if line.sign
        )
        return sorted(texts)

    assert changed("unified") == changed("sides")


def test_words_that_differ_are_marked_and_shared_ones_are_not() -> None:
    marked = {
        "".join(part.text for part in line.segments if part.is_changed)
        for line in lines_of("unified")
    }
    assert "refund_requested_at__lt=now - TIMEOUT" in marked
    assert "mark_refund_failed()" in marked
    assert ".select_for_update()" in marked


def test_a_long_unchanged_run_starts_folded_with_all_its_lines() -> None:
    folded = [
        chunk
        for file in sample_diff().files
        for hunk in file.hunks
        for chunk in hunk.unified
        if chunk.is_folded
    ]
    assert [len(chunk.rows) for chunk in folded] == [6]


def test_text_without_a_known_language_is_shown_plain() -> None:
    patch = "--- a/notes.zzz\n+++ b/notes.zzz\n@@ -1 +1 @@\n-旧\n+新\n"
    (file,) = diff_set(parse_diff(patch)).files
    assert {part.css_class for chunk in file.hunks[0].unified for row in chunk.rows
            if isinstance(row, CodeLine) for part in row.segments} == {""}  # fmt: skip


def test_a_page_stays_light() -> None:
    files = [path for path in STATIC.rglob("*") if path.suffix in {".css", ".js", ".svg"}]
    weight = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    weight += sum(path.stat().st_size for path in STATIC.rglob("*.woff2"))
    assert weight < PAGE_LIMIT_BYTES


def test_vendored_files_are_the_pinned_ones() -> None:
    listed = re.findall(
        r"\| `([^`]+)` \|.*`([0-9a-f]{64})` \|",
        (STATIC / "vendor/VERSIONS.md").read_text(encoding="utf-8"),
    )
    named = {name for name, _digest in listed}
    assert {
        path.name
        for path in (STATIC / "vendor").iterdir()
        if path.suffix in {".css", ".js", ".woff2"}
    } <= named
    for name, digest in listed:
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
