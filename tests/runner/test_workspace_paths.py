"""Paths inside a workspace: hostile names, symlinks, special files, and swaps in between."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.errors import TooLarge, WorkspaceError
from orchestration.runner.workspace import (
    allowed_workspace,
    artifact_exists,
    digest_inside,
    open_directory_inside,
    open_file_inside,
    read_inside,
    resolve_inside,
)

HOSTILE = [
    "",
    "/etc/passwd",
    "..",
    "../outside",
    "sub/../../outside",
    "sub/..",
    "a\0b",
    "\ud800",
    "out/passwd",
    "chain/passwd",
    "loop",
    "loop/x",
]


@pytest.fixture
def traps(workspace: Path, tmp_path: Path) -> Path:
    """Fill a workspace with ways out of it."""
    (tmp_path / "outside").write_text("secret")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "file.txt").write_bytes(b"content")
    (workspace / "inner").symlink_to("sub")
    (workspace / "out").symlink_to("/etc")
    (workspace / "chain").symlink_to("out")
    (workspace / "secret").symlink_to(tmp_path / "outside")
    (workspace / "loop").symlink_to("loop")
    return workspace


READERS: list[Callable[[Path, str], object]] = [
    resolve_inside,
    digest_inside,
    artifact_exists,
    open_directory_inside,
    lambda workspace, path: read_inside(workspace, path, 100),
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", [*HOSTILE, "secret"])
def test_hostile_path_is_refused_everywhere(
    traps: Path, reader: Callable[[Path, str], object], path: str
) -> None:
    with pytest.raises(WorkspaceError):
        reader(traps, path)


@pytest.mark.parametrize("path", ["sub/file.txt", "./sub/file.txt", "sub//file.txt"])
def test_plain_path_is_read(traps: Path, path: str) -> None:
    assert read_inside(traps, path, 100) == b"content"
    assert digest_inside(traps, path) == hashlib.sha256(b"content").hexdigest()
    assert artifact_exists(traps, path) == 7


def test_symlink_that_stays_inside_is_followed(traps: Path) -> None:
    assert resolve_inside(traps, "inner/file.txt") == traps / "sub" / "file.txt"
    assert read_inside(traps, "inner/file.txt", 100) == b"content"


def test_workspace_that_is_itself_a_symlink_works(traps: Path, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(traps)
    assert read_inside(tmp_path / "door", "sub/file.txt", 100) == b"content"
    with pytest.raises(WorkspaceError):
        read_inside(tmp_path / "door", "secret", 100)


def test_names_of_any_script_work(workspace: Path) -> None:
    (workspace / "报告 – Ω.md").write_text("好")
    assert read_inside(workspace, "报告 – Ω.md", 100) == "好".encode()


def test_missing_file_is_nothing_but_its_own_error(traps: Path) -> None:
    assert artifact_exists(traps, "sub/missing") is None
    assert artifact_exists(traps, "missing/file") is None
    with pytest.raises(WorkspaceError) as caught:
        read_inside(traps, "sub/missing", 100)
    assert caught.value.code == "workspace_missing"


def test_name_longer_than_any_file_system_allows_is_refused(workspace: Path) -> None:
    with pytest.raises(WorkspaceError):
        artifact_exists(workspace, "x" * 300)


def test_empty_file_exists_with_size_zero(workspace: Path) -> None:
    (workspace / "empty").touch()
    assert artifact_exists(workspace, "empty") == 0


def test_file_below_a_file_is_refused(traps: Path) -> None:
    with pytest.raises(WorkspaceError):
        artifact_exists(traps, "sub/file.txt/below")


def test_limit_holds_to_the_byte(traps: Path) -> None:
    assert read_inside(traps, "sub/file.txt", 7) == b"content"
    with pytest.raises(TooLarge):
        read_inside(traps, "sub/file.txt", 6)


def test_endless_file_is_not_read_beyond_the_limit(workspace: Path) -> None:
    with (workspace / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(TooLarge):
        read_inside(workspace, "sparse", 1000)


def make_socket(path: Path) -> None:
    """Leave a socket's name behind; its own directory keeps the name short enough."""
    with socket.socket(socket.AF_UNIX) as made:
        directory = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{directory}/{path.name}")
        os.close(directory)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        make_socket,
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("/dev/stdin"),
    ],
    ids=["fifo", "socket", "directory", "device", "stdin"],
)
@pytest.mark.parametrize("reader", [digest_inside, artifact_exists, READERS[-1]])
def test_special_file_is_refused_and_never_waited_for(
    workspace: Path,
    make: Callable[[Path], object],
    reader: Callable[[Path, str], object],
) -> None:
    make(workspace / "special")
    with pytest.raises(WorkspaceError):
        reader(workspace, "special")


def test_directory_swapped_for_a_symlink_after_the_check_is_refused(
    traps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file.txt").write_text("secret")
    real_open = os.open

    def open_after_swap(
        path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        if path == "sub":  # the attacker's moment: checked, but not yet opened
            (traps / "sub").rename(tmp_path / "moved")
            (traps / "sub").symlink_to(elsewhere)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_after_swap)
    with pytest.raises(WorkspaceError):
        read_inside(traps, "sub/file.txt", 100)


def test_file_swapped_for_a_symlink_after_the_look_is_refused(
    traps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def open_after_swap(
        path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        if path == "file.txt":
            (traps / "sub" / "file.txt").unlink()
            (traps / "sub" / "file.txt").symlink_to(tmp_path / "outside")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_after_swap)
    with pytest.raises(WorkspaceError):
        read_inside(traps, "sub/file.txt", 100)


def test_file_swapped_for_a_fifo_after_the_look_is_refused_and_not_waited_for(
    traps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def open_after_swap(
        path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        if path == "file.txt":
            (traps / "sub" / "file.txt").unlink()
            os.mkfifo(traps / "sub" / "file.txt")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_after_swap)
    with pytest.raises(WorkspaceError):
        read_inside(traps, "sub/file.txt", 100)


def test_refusals_leave_no_file_open(traps: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in [*HOSTILE, "secret", "sub", "sub/missing"]:
        with pytest.raises(WorkspaceError):
            read_inside(traps, path, 100)
    with open_file_inside(traps, "sub/file.txt") as (_, status):
        assert status.st_size == 7
    assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestAllowedWorkspace:
    """Which directories may be a workspace at all."""

    def test_directory_inside_a_root_is_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "root" / "project").mkdir(parents=True)
        roots = [tmp_path / "other", tmp_path / "root"]
        wanted = tmp_path / "root" / "project"
        assert allowed_workspace(wanted, roots) == wanted
        assert allowed_workspace(str(wanted / ".." / "project"), roots) == wanted
        assert allowed_workspace(tmp_path / "root", roots) == tmp_path / "root"

    @pytest.mark.parametrize("path", ["outside", "root/../outside", "root/door", "root-2", "/"])
    def test_directory_outside_is_refused(self, tmp_path: Path, path: str) -> None:
        for name in ("root", "root-2", "outside"):
            (tmp_path / name).mkdir()
        (tmp_path / "root" / "door").symlink_to(tmp_path / "outside")
        with pytest.raises(WorkspaceError):
            allowed_workspace(tmp_path / path, [tmp_path / "root"])

    def test_no_roots_allow_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(WorkspaceError):
            allowed_workspace(tmp_path, [])

    def test_missing_directory_is_made_only_when_asked(self, tmp_path: Path) -> None:
        wanted = tmp_path / "a" / "b"
        assert allowed_workspace(wanted, [tmp_path]) == wanted
        assert not wanted.exists()
        assert allowed_workspace(wanted, [tmp_path], create=True) == wanted
        assert wanted.is_dir()

    def test_missing_directory_behind_a_symlink_out_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "root").mkdir()
        (tmp_path / "root" / "door").symlink_to("/etc")
        with pytest.raises(WorkspaceError):
            allowed_workspace(tmp_path / "root" / "door" / "new", [tmp_path / "root"], create=True)

    def test_file_is_no_workspace_and_holds_none(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(WorkspaceError):
            allowed_workspace(tmp_path / "file", [tmp_path])
        with pytest.raises(WorkspaceError):
            allowed_workspace(tmp_path / "file" / "below", [tmp_path])

    @pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5000])
    def test_what_is_no_path_is_refused(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(WorkspaceError):
            allowed_workspace(path, [tmp_path])

    def test_root_that_is_a_symlink_counts_as_what_it_means(self, tmp_path: Path) -> None:
        (tmp_path / "real" / "project").mkdir(parents=True)
        (tmp_path / "root").symlink_to(tmp_path / "real")
        found = allowed_workspace(tmp_path / "root" / "project", [tmp_path / "root"])
        assert found == tmp_path / "real" / "project"


@pytest.mark.parametrize("reader", [digest_inside, artifact_exists, READERS[-1]])
def test_hard_link_to_a_file_outside_is_refused(
    workspace: Path, tmp_path: Path, reader: Callable[[Path, str], object]
) -> None:
    (tmp_path / "outside").write_text("secret")
    os.link(tmp_path / "outside", workspace / "link")
    os.link(tmp_path / "outside", workspace / "another")
    with pytest.raises(WorkspaceError) as caught:
        reader(workspace, "link")
    assert "hard link" in caught.value.detail


def test_hard_links_inside_the_workspace_are_read(workspace: Path) -> None:
    (workspace / "deep").mkdir()
    (workspace / "one").write_text("built")
    os.link(workspace / "one", workspace / "deep" / "two")
    assert read_inside(workspace, "deep/two", 100) == b"built"
