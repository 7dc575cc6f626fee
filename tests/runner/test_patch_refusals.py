"""Patches that are refused: out of the workspace, malformed, unsupported, or not fitting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestration.errors import Invalid, TooLarge, WorkspaceError
from orchestration.runner import file_writes
from orchestration.runner.patches import apply_patch, is_applied
from tests.runner.patch_texts import GIT, HEAD, LINES, RENAME, diff, tree


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../outside.txt",
        "a/../../outside.txt",
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        "./file.txt",
        "a//b",
    ],
)
@pytest.mark.parametrize("text", ["--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+x\n"])
def test_path_out_of_the_workspace_is_refused(workspace: Path, path: str, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        apply_patch(workspace, text.format(path))
    assert caught.value.code == "patch_invalid"
    assert tree(workspace) == {}


@pytest.mark.parametrize("path", ["door/file.txt", "link.txt", "inner/file.txt"])
def test_file_behind_a_symlink_is_refused(workspace: Path, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("x\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "file.txt").write_text("x\n")
    (workspace / "door").symlink_to(outside)
    (workspace / "link.txt").symlink_to(outside / "file.txt")
    (workspace / "inner").symlink_to("sub")
    with pytest.raises(WorkspaceError):
        apply_patch(workspace, diff("x\n", "y\n", path))
    with pytest.raises(WorkspaceError):
        apply_patch(workspace, diff("", "y\n", path.replace("file", "new")))
    assert (outside / "file.txt").read_text() == "x\n"
    assert (workspace / "sub" / "file.txt").read_text() == "x\n"


def test_special_file_is_refused(workspace: Path) -> None:
    os.mkfifo(workspace / "file.txt")
    with pytest.raises(WorkspaceError):
        apply_patch(workspace, diff("x\n", "y\n"))


def test_file_beyond_the_limit_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writes, "MAX_FILE_BYTES", 10)
    (workspace / "file.txt").write_text("x\n" * 6)
    with pytest.raises(TooLarge):
        apply_patch(workspace, diff("x\n" * 6, "y\n" * 6))


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "just a message\n",
        HEAD,
        HEAD + "@@ -1,2 +1,2 @@\n-line 1\n+LINE 1\n",
        HEAD + "@@ -1 +1 @@\n-line 1\n+LINE 1\n+lost line\n",
        HEAD + "@@ -1 +1 @@\n-line 1\n+LINE 1\n line 2\n",
        HEAD + "@@ -1,1 +1,1 @@\n-line 1\n*LINE 1\n",
        HEAD + "@@@ -1 -1 +1 @@@\n- line 1\n++LINE 1\n",
        HEAD + "@@ -1 +1 @@\n-line 1\n+LINE 1\nsome text\n" + HEAD + "@@ -2 +2 @@\n-line 2\n+x\n",
        HEAD + "@@ -5 +5 @@\n-line 5\n+x\n@@ -2 +2 @@\n-line 2\n+x\n",
        HEAD + "@@ -1 +1 @@\n\\ No newline at end of file\n-line 1\n+x\n",
        "@@ -1 +1 @@\n-line 1\n+x\n",
        "+++ b/file.txt\n@@ -1 +1 @@\n-line 1\n+x\n",
        "--- a/file.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-line 1\n+x\n",
        "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
        '--- "a/file.txt\n+++ b/file.txt\n@@ -1 +1 @@\n-line 1\n+x\n',
        "--- a/fi\udcffle.txt\n+++ b/fi\udcffle.txt\n@@ -1 +1 @@\n-line 1\n+x\n",
        HEAD + "@@ -1 +1 @@\n-line 1\n+x\ud800\n",
        diff(LINES, LINES + "x\n") * 2,
        GIT,
        GIT + "index 111..222 100644\nBinary files a/file.txt and b/file.txt differ\n",
        GIT + "index 111..222 100644\nGIT binary patch\nliteral 3\nKcmZ\n",
        GIT + "new file mode 120000\n--- /dev/null\n+++ b/file.txt\n@@ -0,0 +1 @@\n+/etc/passwd\n",
        GIT + "old mode 100644\nnew mode 120000\n",
        GIT + "index 111..222 160000\n" + HEAD + "@@ -1 +1 @@\n-Subproject 1\n+Subproject 2\n",
        GIT + "new file mode 100644\n" + HEAD + "@@ -1 +1 @@\n-line 1\n+x\n",
        GIT + "--- a/file.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n",
        "diff --git a/file.txt b/copy.txt\ncopy from file.txt\ncopy to copy.txt\n",
        "diff --git a/file.txt b/other.txt\n--- a/file.txt\n+++ b/other.txt\n"
        "@@ -1 +1 @@\n-line 1\n+x\n",
        "Binary files file.txt and other.txt differ\n",
    ],
)
def test_malformed_or_unsupported_patch_is_refused(forty: Path, patch: str) -> None:
    for attempt in (apply_patch, is_applied):
        with pytest.raises(Invalid) as caught:
            attempt(forty, patch)
        assert caught.value.code == "patch_invalid"
        assert caught.value.errors
    assert tree(forty) == {"file.txt": LINES.encode()}


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (HEAD + "@@ -3,0 +4 @@\n+blind insertion\n", "no lines by which"),
        ("--- /dev/null\n+++ b/file.txt\n@@ -0,0 +1 @@\n+x\n", "exists with other content"),
        ("--- a/file.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n", "more than the patch deletes"),
        ("--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n", "does not exist"),
        (RENAME, "does not exist"),
    ],
)
def test_patch_that_does_not_fit_is_a_conflict(forty: Path, patch: str, reason: str) -> None:
    assert not is_applied(forty, patch)
    with pytest.raises(Invalid, match=reason) as caught:
        apply_patch(forty, patch)
    assert caught.value.code == "patch_conflict"
    assert tree(forty) == {"file.txt": LINES.encode()}
