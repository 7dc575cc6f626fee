"""A git worktree as workspace: git works in it, and a forged `.git` file gives nothing away."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.runner.command import CommandSpec, run_command
from orchestration.runner.workspace import digest_inside
from orchestration.runner.worktrees import worktree_places
from tests.runner.sandboxes import findings, kinds_that_hold


def git(place: Path, *words: str) -> str:
    """Run git in a place. Return what it says."""
    # A sandbox that is another account owns what it worked on.
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "safe.directory=*")
    command = [shutil.which("git") or "git", *settings, *words]
    done = subprocess.run(  # noqa: S603 (our words)
        command, cwd=place, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "file.txt").write_text("content")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "first commit")
    return made


@pytest.fixture
def worktree(repository: Path, tmp_path: Path) -> Path:
    git(repository, "worktree", "add", "-q", "-b", "work", str(tmp_path / "worktree"))
    return tmp_path / "worktree"


def test_worktree_needs_the_repository_it_belongs_to(repository: Path, worktree: Path) -> None:
    assert worktree_places(worktree, []) == [repository / ".git"]
    assert worktree_places(repository, []) == []
    assert len(digest_inside(worktree, "file.txt")) == 64


@pytest.mark.parametrize("kind", kinds_that_hold())
def test_git_works_in_a_worktree_in_the_sandbox(
    kind: str, worktree: Path, repository: Path, tmp_path: Path
) -> None:
    held = findings()[kind].sandbox  # type: ignore[index]
    assert held is not None
    secret = tmp_path / "data"
    secret.mkdir(mode=0o700)
    sandbox = replace(held, secret=(secret,))
    (worktree / "new.txt").write_text("new")
    said: list[str] = []
    for argv in (("git", "log", "--oneline"), ("git", "status", "--short")):
        spec = CommandSpec(argv=argv, workspace=worktree, sandbox=sandbox)
        result = run_command(
            spec, on_output=said.append, on_start=lambda _: None, should_stop=lambda: None
        )
        assert result.outcome == "ok", result.stdout_tail
    assert "first commit" in "".join(said)
    assert "?? new.txt" in "".join(said)
    hook = f"echo x > {repository}/.git/hooks/post-checkout"
    spec = CommandSpec(argv=("sh", "-c", hook), workspace=worktree, sandbox=sandbox)
    run_command(spec, on_output=said.append, on_start=lambda _: None, should_stop=lambda: None)
    assert not (repository / ".git" / "hooks" / "post-checkout").exists()


def test_forged_link_to_another_repository_is_not_believed(
    repository: Path, worktree: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "forged"
    forged.mkdir()
    for target in (
        repository / ".git",
        repository / ".git" / "worktrees" / "worktree",
        Path("/root"),
        Path("/nowhere"),
    ):
        (forged / ".git").write_text(f"gitdir: {target}\n")
        assert worktree_places(forged, []) == []


def test_forged_directory_in_the_workspace_is_not_believed(
    repository: Path, tmp_path: Path
) -> None:
    forged = tmp_path / "forged"
    own = forged / "worktrees" / "x"
    own.mkdir(parents=True)
    (forged / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(str(forged / ".git"))
    for common in (repository / ".git", forged, Path("../..")):
        (own / "commondir").write_text(str(common))
        for part in ("HEAD", "objects", "refs"):
            (forged / part).touch()
        assert worktree_places(forged, []) == []


def test_repository_in_or_around_a_secret_place_is_not_shown(
    repository: Path, worktree: Path
) -> None:
    assert worktree_places(worktree, [repository]) == []
    assert worktree_places(worktree, [repository / ".git" / "objects"]) == []
