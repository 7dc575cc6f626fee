"""Diffs as rows: numbers, changed words, folds, two columns; hostile patches refused by line."""

from __future__ import annotations

import difflib
import random
from itertools import pairwise

import pytest

from orchestration.errors import Invalid
from orchestration.rules.diffs import DiffLine, DiffView, Fold, SideRow, parse_diff
from orchestration.rules.word_changes import WorkBudget, changed_words


def diff_of(old: list[str], new: list[str], context: int = 3) -> str:
    lines = difflib.unified_diff(old, new, "a/f.txt", "b/f.txt", n=context, lineterm="")
    return "\n".join(lines) + "\n"


def only_hunk(text: str) -> tuple[DiffLine, ...]:
    view = parse_diff(text)
    (file,) = view.files
    (hunk,) = file.hunks
    return hunk.lines


SMALL = """diff --git a/src/total.py b/src/total.py
index 1111111..2222222 100644
--- a/src/total.py
+++ b/src/total.py
@@ -4,4 +4,5 @@ def mean(values):
     total = sum(values)
-    return total / len(values)
+    if not values:
+        return 0
+    return total / max(len(values), 1)
     # end
-    # old
"""


def test_lines_carry_their_numbers_on_both_sides() -> None:
    view = parse_diff(SMALL)
    (file,) = view.files
    (hunk,) = file.hunks
    assert (file.path, file.kind, file.added, file.removed) == ("src/total.py", "modified", 3, 2)
    assert (hunk.header, hunk.section) == ("@@ -4,4 +4,5 @@", "def mean(values):")
    assert [(one.kind, one.old_number, one.new_number) for one in hunk.lines] == [
        ("context", 4, 4),
        ("removed", 5, None),
        ("added", None, 5),
        ("added", None, 6),
        ("added", None, 7),
        ("context", 6, 8),
        ("removed", 7, None),
    ]
    assert hunk.lines[0].text == "    total = sum(values)"


def test_two_columns_put_old_beside_new() -> None:
    rows = parse_diff(SMALL).files[0].hunks[0].side_by_side()
    shown = [
        (row.old and row.old.old_number, row.new and row.new.new_number)
        for row in rows
        if isinstance(row, SideRow)
    ]
    assert shown == [(4, 4), (5, 5), (None, 6), (None, 7), (6, 8), (7, None)]


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        ("return a / b", "return a / c", ["b"], ["c"]),
        ("x = count(y)", "x = max(count(y), 1)", [], ["max(", "), 1"]),
        ("再说一句话", "再说两句话", ["一"], ["两"]),
        ("one two three", "one three", ["two "], []),
        ("same words here", "same words here!", [], ["!"]),
        ("foo_bar = value", "foo_baz = value", ["foo_bar"], ["foo_baz"]),
        ("alpha", "completely different", [], []),
        ("", "new", [], []),
        ("  indented", "    indented", ["  "], ["    "]),
    ],
)
def test_changed_words(old: str, new: str, gone: list[str], come: list[str]) -> None:
    before, after = changed_words(old, new, WorkBudget())
    assert [old[start:end] for start, end in before] == gone
    assert [new[start:end] for start, end in after] == come


def test_what_is_not_marked_is_the_same_on_both_sides() -> None:
    chosen = random.Random(5)
    for _ in range(300):
        old = " ".join(chosen.choices(["a", "bb", "c(", "中", "  "], k=chosen.randrange(1, 12)))
        new = " ".join(chosen.choices(["a", "bb", "c(", "中", "  "], k=chosen.randrange(1, 12)))
        before, after = changed_words(old, new, WorkBudget())
        marked = bool(before or after)
        assert not marked or without(old, before) == without(new, after)
        assert all(end < start for (_, end), (start, _) in pairwise(before))


def without(text: str, ranges: tuple[tuple[int, int], ...]) -> str:
    kept = list(text)
    for start, end in ranges:
        kept[start:end] = [""] * (end - start)
    return "".join(kept)


def test_a_line_too_long_to_compare_keeps_its_common_ends() -> None:
    old, new = "start " + "a " * 5_000 + "end", "start " + "b " * 5_000 + "end"
    assert changed_words(old, new, WorkBudget()) == ((), ())
    longer = "start " * 2_000
    (before,), (after,) = changed_words(longer + "a" * 300 + " end", longer + "b end", WorkBudget())
    assert before == (len(longer), len(longer) + 300)
    assert after == (len(longer), len(longer) + 1)


def test_a_spent_budget_still_marks_the_middle() -> None:
    before, after = changed_words("a b c d e f", "a x c y e f", WorkBudget(cells=0))
    assert (before, after) == (((2, 7),), ((2, 7),))


@pytest.mark.parametrize(("unchanged", "folded"), [(8, 0), (9, 3), (30, 24)])
def test_long_unchanged_runs_fold(unchanged: int, folded: int) -> None:
    same = [f"line {at}" for at in range(unchanged)]
    text = diff_of(["a", *same, "b"], ["A", *same, "B"], context=unchanged)
    (hunk,) = parse_diff(text).files[0].hunks
    unified = hunk.unified()
    columns = hunk.side_by_side()
    assert sum(len(row.lines) for row in unified if isinstance(row, Fold)) == folded
    assert [row for row in unified if isinstance(row, Fold)] == [
        row for row in columns if isinstance(row, Fold)
    ]
    shown = [row for row in unified if isinstance(row, DiffLine)]
    assert len(shown) + folded == len(hunk.lines)


def test_unified_rows_unfold_to_all_lines() -> None:
    chosen = random.Random(6)
    for _ in range(40):
        old = [chosen.choice("abcd") * 3 for _ in range(chosen.randrange(1, 40))]
        new = [one if chosen.random() < 0.85 else "changed" for one in old]
        new.insert(chosen.randrange(len(new) + 1), "inserted")
        for hunk in parse_diff(diff_of(old, new, context=12)).files[0].hunks:
            rows = hunk.unified()
            unfolded = [
                line for row in rows for line in (row.lines if isinstance(row, Fold) else [row])
            ]
            assert tuple(unfolded) == hunk.lines
            for line in hunk.lines:
                assert line.old_number is None or old[line.old_number - 1] == line.text
                assert line.new_number is None or new[line.new_number - 1] == line.text


MANY = """From 1111 Mon Sep 17 00:00:00 2001
Subject: [PATCH] many kinds
---
 a.txt | 2 +-

diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/tool.sh b/tool.sh
old mode 100644
new mode 100755
diff --git "a/\\344\\270\\255.txt" "b/\\344\\270\\255.txt"
--- "a/\\344\\270\\255.txt"
+++ "b/\\344\\270\\255.txt"
@@ -1 +1 @@
-a
+b
diff --git a/pic.png b/pic.png
index 111..222 100644
Binary files a/pic.png and b/pic.png differ
--
2.39.2
"""


def test_all_kinds_of_files_are_told_apart() -> None:
    view = parse_diff(MANY)
    assert [(one.path, one.kind, one.is_binary) for one in view.files] == [
        ("new.txt", "added", False),
        ("gone.txt", "removed", False),
        ("new name.txt", "renamed", False),
        ("tool.sh", "modified", False),
        ("中.txt", "modified", False),
        ("pic.png", "modified", True),
    ]
    assert view.files[0].hunks[0].lines[0].has_newline is False
    assert view.files[1].hunks[0].lines[0].has_newline is True
    assert "old name.txt" in view.paths


def test_a_plain_diff_without_git_headers_is_read() -> None:
    view = parse_diff("--- total.py\t2026-01-01\n+++ total.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n")
    assert view.paths == ("total.py",)


def test_two_plain_files_follow_each_other() -> None:
    one = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
    assert parse_diff(one.format("x") + one.format("y")).paths == ("x", "y")


def test_a_symlink_is_flagged() -> None:
    view = parse_diff(
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"
    )
    assert view.files[0].is_symlink


def test_a_long_file_starts_folded() -> None:
    long = [str(at) for at in range(401)]
    assert parse_diff(diff_of([], long)).files[0].starts_folded
    assert not parse_diff(diff_of([], long[:400])).files[0].starts_folded


HEAD = "--- a/f\n+++ b/f\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "no unified diff"),
        ("just words\n", 1, "no unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", 1, "unexpected hunk"),
        (HEAD + "@@ -1,2 +1,2 @@\n-a\n+b\n", 5, "shorter"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\n+c\n", 6, "longer than its header"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\n c\n", 6, "longer than its header"),
        (HEAD + "@@ -1 +1 @@\n-a\n-b\n", 5, "longer"),
        (HEAD + "@@ -1 +1 @@\nwords\n", 4, "line expected"),
        (HEAD + "@@ -" + "9" * 5_000 + " +1 @@\n-a\n+b\n", 3, ""),
        ("+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", 1, "without source"),
        ("--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-a\n+b\n", 2, "climbs out"),
        ("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", 2, "relative"),
        ("diff --git a/x b/x\nrename from x\nrename to x\n", 1, "changes nothing"),
        ("diff --git " + "a/x " * 500 + "b/x\n", 1, "too long"),
        ("diff --git http://a http://b\n", 1, "names an address"),
        ("Binary file" + " and x" * 400 + "\n", 1, "too long"),
    ],
)
def test_a_malformed_patch_is_refused_by_line(text: str, line: int, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_diff(text)
    assert caught.value.errors[0]["path"] == f"lines.{line}"
    assert said in caught.value.errors[0]["message"]
    assert caught.value.code == "diff_invalid"


def test_a_removed_line_that_looks_like_a_header_is_shown() -> None:
    lines = only_hunk(HEAD + "@@ -1,2 +1 @@\n--- a comment\n-x\n+y\n")
    assert [one.text for one in lines] == ["-- a comment", "x", "y"]


def test_odd_characters_do_not_break_lines() -> None:
    lines = only_hunk(HEAD + "@@ -1 +1 @@\n-a\u2028b\x0cc\r\n+a\u2028b\x0cd\r\n")
    assert [one.text for one in lines] == ["a\u2028b\x0cc\r", "a\u2028b\x0cd\r"]


def test_a_hostile_patch_of_many_long_lines_ends() -> None:
    old = ["a b " * 60 + str(at) for at in range(2_000)]
    new = ["b a " * 60 + str(at) for at in range(2_000)]
    view = parse_diff(diff_of(old, new))
    assert isinstance(view, DiffView)
    assert view.files[0].added == 2_000


def test_a_patch_over_the_limit_is_refused() -> None:
    with pytest.raises(Invalid, match="over 8388608 bytes"):
        parse_diff("x" * 8_388_609)
