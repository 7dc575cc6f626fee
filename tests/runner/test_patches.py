"""Patches are applied exactly, completely or not at all, and are safe to try again."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from orchestration.errors import Invalid, WorkspaceError
from orchestration.runner.patches import apply_patch, is_applied, patched_paths
from tests.runner.patch_texts import HEAD, LINES, RENAME, diff, tree


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LINES, LINES.replace("line 7\n", "LINE 7\n")),
        (LINES, LINES.replace("line 3\n", "").replace("line 33\n", "line 33\nmore\n")),
        (LINES, "first\n" + LINES + "last\n"),
        (LINES, "only\n"),
        ("one", "two"),
        ("one", "one\n"),
        ("one\n", "one"),
        ("a\nb", "a\nb\nc"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\r\nc\r\n"),
        ("a\x0bb\nc\u2028d\n", "a\x0bb\nc\u2028D\n"),
        ("-- old\n++ x\n", "-- new\n++ x\n"),
        ("漢\n", "字\n"),
        ("", "new file\n"),
        ("", "no end"),
        ("old file\n", ""),
    ],
)
def test_patch_gives_exactly_the_new_file_and_is_seen_as_applied(
    workspace: Path, old: str, new: str
) -> None:
    path = workspace / "file.txt"
    if old:
        path.write_bytes(old.encode())
    patch = diff(old, new)
    assert not is_applied(workspace, patch)
    apply_patch(workspace, patch)
    assert tree(workspace) == ({"file.txt": new.encode()} if new else {})
    assert is_applied(workspace, patch)
    again = apply_patch(workspace, patch)
    assert [row.was_applied for row in again.files] == [True]
    assert tree(workspace) == ({"file.txt": new.encode()} if new else {})


@pytest.mark.parametrize("seed", range(40))
def test_random_edits_survive_the_round_trip(workspace: Path, seed: int) -> None:
    chance = random.Random(seed)
    old = [f"{chance.randrange(12)}\n" for _ in range(chance.randrange(1, 60))]
    new = list(old)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(new) + 1)
        new[at : at + chance.randrange(3)] = [f"{chance.randrange(12)}\n"] * chance.randrange(3)
    before, after = "".join(old), "".join(new)
    (workspace / "file.txt").write_text(before)
    patch = diff(before, after) if before != after else diff(before, before + "x\n")
    apply_patch(workspace, patch)
    wanted = after if before != after else before + "x\n"
    assert (tree(workspace).get("file.txt") or b"").decode() == wanted


def test_bytes_that_are_not_utf8_are_kept(workspace: Path) -> None:
    (workspace / "file.txt").write_bytes(b"caf\xe9\none\n")
    patch = "--- a/file.txt\n+++ b/file.txt\n@@ -1,2 +1,2 @@\n caf\udce9\n-one\n+two\n"
    apply_patch(workspace, patch)
    assert (workspace / "file.txt").read_bytes() == b"caf\xe9\ntwo\n"


def test_empty_line_may_stand_for_an_empty_line_of_context(workspace: Path) -> None:
    (workspace / "file.txt").write_text("a\n\nb\n")
    apply_patch(workspace, "--- a/file.txt\n+++ b/file.txt\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B")
    assert (workspace / "file.txt").read_text() == "a\n\nB\n"


def test_plain_paths_are_not_stripped(workspace: Path) -> None:
    (workspace / "a").mkdir()
    (workspace / "a" / "file.txt").write_text("x\n")
    apply_patch(workspace, "--- a/file.txt\n+++ a/file.txt\n@@ -1 +1 @@\n-x\n+y\n")
    assert (workspace / "a" / "file.txt").read_text() == "y\n"


def test_time_stamps_and_messages_around_the_patch_are_no_part_of_it(forty: Path) -> None:
    patch = (
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Fix\n\n---\n file.txt | 2 +-\n\n"
        "diff --git a/file.txt b/file.txt\nindex 111..222 100644\n"
        "--- a/file.txt\t2024-01-01 00:00:00\n+++ b/file.txt\t2024-01-01 00:00:00\n"
        "@@ -1,2 +1,2 @@ section\n-line 1\n+LINE 1\n line 2\n-- \n2.39.2\n\n"
    )
    apply_patch(forty, patch)
    assert (forty / "file.txt").read_text().startswith("LINE 1\nline 2\n")


def test_new_files_get_their_directories_and_mode(workspace: Path) -> None:
    patch = (
        "diff --git a/tools/new/run.sh b/tools/new/run.sh\nnew file mode 100755\n"
        "index 000..111\n--- /dev/null\n+++ b/tools/new/run.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
        "diff --git a/tools/empty b/tools/empty\nnew file mode 100644\nindex 000..e69\n"
    )
    result = apply_patch(workspace, patch)
    assert tree(workspace) == {"tools/empty": b"", "tools/new/run.sh": b"#!/bin/sh\n"}
    assert stat.S_IMODE((workspace / "tools/new/run.sh").stat().st_mode) == 0o755
    assert [(row.path, row.action) for row in result.files] == [
        ("tools/new/run.sh", "created"),
        ("tools/empty", "created"),
    ]
    assert is_applied(workspace, patch)


def test_plain_diff_of_a_new_file_without_dev_null_works(workspace: Path) -> None:
    apply_patch(workspace, "--- new.txt\n+++ new.txt\n@@ -0,0 +1 @@\n+x\n")
    assert tree(workspace) == {"new.txt": b"x\n"}


def test_mode_changes_and_the_rest_of_the_mode_stays(workspace: Path) -> None:
    path = workspace / "run.sh"
    path.write_text("x\n")
    path.chmod(0o640)
    patch = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    assert not is_applied(workspace, patch)
    apply_patch(workspace, patch)
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert is_applied(workspace, patch)
    apply_patch(workspace, diff("x\n", "y\n", "run.sh"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_rename_with_a_change(workspace: Path) -> None:
    (workspace / "old name.txt").write_text("one\ntwo\n")
    result = apply_patch(workspace, RENAME)
    assert tree(workspace) == {"new/name.txt": b"one\nTWO\n"}
    assert [(row.action, row.old_path) for row in result.files] == [("renamed", "old name.txt")]
    assert is_applied(workspace, RENAME)
    assert apply_patch(workspace, RENAME).files[0].was_applied


def test_rename_killed_half_way_is_finished(workspace: Path) -> None:
    (workspace / "old name.txt").write_text("one\ntwo\n")
    (workspace / "new").mkdir()
    (workspace / "new" / "name.txt").write_text("one\nTWO\n")
    assert not is_applied(workspace, RENAME)
    apply_patch(workspace, RENAME)
    assert tree(workspace) == {"new/name.txt": b"one\nTWO\n"}


def test_rename_never_replaces_another_file(workspace: Path) -> None:
    (workspace / "old name.txt").write_text("one\ntwo\n")
    (workspace / "new").mkdir()
    (workspace / "new" / "name.txt").write_text("precious\n")
    with pytest.raises(Invalid, match=r"would replace"):
        apply_patch(workspace, RENAME)
    assert (workspace / "new" / "name.txt").read_text() == "precious\n"


def test_name_that_git_quotes(workspace: Path) -> None:
    (workspace / 'caf\u00e9 "x".txt').write_text("x\n")
    name = '"{}/caf\\303\\251 \\"x\\".txt"'
    patch = f"diff --git {name.format('a')} {name.format('b')}\nindex 1..2 100644\n"
    patch += f"--- {name.format('a')}\n+++ {name.format('b')}\n@@ -1 +1 @@\n-x\n+y\n"
    apply_patch(workspace, patch)
    assert tree(workspace) == {'caf\u00e9 "x".txt': b"y\n"}


def test_shifted_file_still_takes_the_patch(forty: Path) -> None:
    patch = diff(LINES, LINES.replace("line 20\n", "LINE 20\n"))
    (forty / "file.txt").write_text("new\n" * 30 + LINES)
    apply_patch(forty, patch)
    assert (forty / "file.txt").read_text() == "new\n" * 30 + LINES.replace("line 20", "LINE 20")
    assert is_applied(forty, patch)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (LINES.replace("line 19\n", "other\n"), r"hunk 1 does not match at line 19.*other"),
        ("new\n" * 200 + LINES, r"hunk 1 does not match"),
        ("new\n" + LINES + LINES, r"hunk 1 fits at several places"),
        (LINES[:50], r"the end of the file"),
        (LINES.replace("\n", "\r\n"), r"hunk 1 does not match"),
    ],
)
def test_file_that_differs_is_a_conflict_that_names_file_and_hunk(
    forty: Path, content: str, reason: str
) -> None:
    (forty / "file.txt").write_bytes(content.encode())
    with pytest.raises(Invalid, match=reason) as caught:
        apply_patch(forty, diff(LINES, LINES.replace("line 20\n", "LINE 20\n")))
    assert caught.value.code == "patch_conflict"
    assert [fault["path"] for fault in caught.value.errors] == ["file.txt"]
    assert (forty / "file.txt").read_bytes() == content.encode()


def test_applied_patch_is_not_applied_to_a_twin_further_down(workspace: Path) -> None:
    block = "def {}():\n    a = 1\n    b = 2\n    return a\n\n"
    twins = "# top\n" + block.format("f") + "# middle\n" * 8 + block.format("f")
    fixed = twins.replace("return a\n", "return b\n", 1)
    (workspace / "file.txt").write_text(twins)
    patch = diff(twins, fixed)
    shorter = "--- a/file.txt\n+++ b/file.txt\n@@ -3,3 +3,3 @@\n     a = 1\n     b = 2\n"
    shorter += "-    return a\n+    return b\n"
    for wanted in (patch, shorter):
        apply_patch(workspace, wanted)
        assert (workspace / "file.txt").read_text() == fixed
        assert is_applied(workspace, wanted)


def test_every_conflict_is_listed_and_nothing_is_changed(workspace: Path) -> None:
    for name in ("one.txt", "two.txt", "three.txt"):
        (workspace / name).write_text("x\n")
    (workspace / "two.txt").write_text("other\n")
    before = tree(workspace)
    patch = "".join(diff("x\n", "y\n", name) for name in ("one.txt", "two.txt", "missing.txt"))
    with pytest.raises(Invalid) as caught:
        apply_patch(workspace, patch)
    assert [fault["path"] for fault in caught.value.errors] == ["two.txt", "missing.txt"]
    assert tree(workspace) == before


def test_failing_disk_changes_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "one.txt").write_text("x\n")
    (workspace / "two.txt").write_text("x\n")
    (workspace / "old.txt").write_text("x\n")
    before = tree(workspace)
    patch = diff("x\n", "y\n", "one.txt") + diff("", "n\n", "deep/er/new.txt")
    patch += diff("x\n", "", "old.txt") + diff("x\n", "y\n", "two.txt")
    real_rename = os.rename

    def failing_rename(source: str, target: str, **options: int) -> None:
        if target == "two.txt":
            raise OSError(28, "No space left on device")
        real_rename(source, target, **options)

    monkeypatch.setattr(os, "rename", failing_rename)
    with pytest.raises(WorkspaceError, match="No space left"):
        apply_patch(workspace, patch)
    assert tree(workspace) == before
    assert not (workspace / "deep").exists()


def test_kill_between_two_files_is_continued(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "one.txt").write_text("x\n")
    (workspace / "two.txt").write_text("x\n")
    patch = diff("x\n", "y\n", "one.txt") + diff("x\n", "y\n", "two.txt")
    real_rename = os.rename

    def dying_rename(source: str, target: str, **options: int) -> None:
        if target == "two.txt":
            raise KeyboardInterrupt  # like a kill: nothing of ours runs afterwards
        real_rename(source, target, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", dying_rename)
        with pytest.raises(KeyboardInterrupt):
            apply_patch(workspace, patch)
    assert not is_applied(workspace, patch)
    result = apply_patch(workspace, patch)
    assert [row.was_applied for row in result.files] == [True, False]
    assert tree(workspace) == {"one.txt": b"y\n", "two.txt": b"y\n"}


def test_paths_of_a_patch() -> None:
    patch = RENAME + diff("", "x\n", "new.txt") + diff("x\n", "", "gone.txt")
    assert patched_paths(patch) == ("old name.txt", "new/name.txt", "new.txt", "gone.txt")


def test_large_patch_of_a_large_file(workspace: Path) -> None:
    numbers = range(200_000)
    (workspace / "file.txt").write_text("".join(f"{number}\n" for number in numbers))
    hunks = [
        f"@@ -{number + 1} +{number + 1} @@\n-{number}\n+changed\n" for number in numbers[::100]
    ]
    apply_patch(workspace, HEAD + "".join(hunks))
    assert (workspace / "file.txt").read_text().count("changed\n") == len(hunks)
    assert is_applied(workspace, HEAD + "".join(hunks))
