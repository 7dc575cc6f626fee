"""Check in the workspace what an agent says it did: files, builds, tests, and their counts.

What cannot be checked is unverified with its reason, never a pass.
Source: DESIGN section 8 ("Independent verification"); source 003.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from pathlib import Path

from orchestration.contracts.plan import VerificationCommand
from orchestration.errors import CountersignError
from orchestration.models import Artifact, Comment, Output, Task
from orchestration.rules.citations import FOOTNOTE, find_citations
from orchestration.rules.run_counts import ran_nothing, read_counts
from orchestration.rules.spoken_claims import SpokenClaim, find_spoken_claims
from orchestration.rules.spoken_marks import CONTRADICTED, PROVEN, UNVERIFIED, unchecked
from orchestration.rules.toolchains import (
    Argv,
    Toolchain,
    detect_toolchains,
    is_environment_failure,
)
from orchestration.runner.workspace import artifact_exists, read_inside
from orchestration.seats.base import SeatLink
from orchestration.seats.commands import Record, run_one
from orchestration.seats.sandboxing import sandbox_report
from orchestration.states import CommentType, OutputType

WRITTEN = frozenset({".md", ".markdown", ".txt", ".rst"})
"""Endings of files that are read for what they cite."""
PROSE = frozenset({OutputType.DOCUMENT.value, OutputType.OTHER.value})
MOST_FILE_BYTES = 1_000_000
NO_TOOL = frozenset({"not_found", "not_executable"})
NOT_FINISHED = frozenset({"timed_out", "stopped", "refused", "memory_limit", "output_limit"})


def spoken_claims_of(task: Task, outputs: Iterable[Output]) -> list[SpokenClaim]:
    """Read what the agent of this attempt says it did, in its outputs and its hand-off.

    Shape: empty for work of our own backends, whose record needs no words.
    """
    rows = [one for one in outputs if one.assignment is not None and one.assignment.agent_id]
    if not rows:
        return []
    texts = [text for one in rows for text in (one.summary, _prose(one))]
    handed = Comment.objects.filter(
        task=task,
        attempt=task.attempt,
        comment_type=CommentType.HANDOFF.value,
        agent__isnull=False,
    )
    texts += handed.order_by("pk").values_list("body", flat=True)
    found: dict[tuple[object, ...], SpokenClaim] = {}
    for text in texts:
        for claim in find_spoken_claims(text):
            found.setdefault((claim.key, claim.passed, claim.failed), claim)
    for one in rows:
        for claim in find_citations(_document(task, one), folder=posixpath.dirname(one.path)):
            found.setdefault((claim.key, claim.passed, claim.failed), claim)
    return list(found.values())


def _document(task: Task, output: Output) -> str:
    """The text of a document, also of one that is a file of the workspace."""
    if output.type != OutputType.DOCUMENT.value:
        return ""
    if not output.path:
        return output.content
    if posixpath.splitext(output.path)[1].lower() not in WRITTEN or not task.project.workspace:
        return ""
    return _text_of(Path(task.project.workspace), output.path)


def _is_folder(workspace: Path, path: str) -> bool:
    """Whether a path leads to a folder inside the workspace, also through symlinks."""
    try:
        folder = (workspace / path).resolve()
        return folder.is_relative_to(workspace.resolve()) and folder.is_dir()
    except (OSError, ValueError):
        return False


def _text_of(workspace: Path, path: str) -> str:
    try:
        return read_inside(workspace, path, MOST_FILE_BYTES).decode("utf-8", "replace")
    except CountersignError:
        return ""


def _prose(output: Output) -> str:
    return output.content if output.type in PROSE and not output.path else ""


def check_spoken(task: Task, claims: Sequence[SpokenClaim], link: SeatLink) -> list[Record]:
    """Check claims; a build or a test runs once, however often it is claimed.

    Shape: `{claim, key, kind, path, verdict, reason, params, why, counts, is_count_wrong, argv,
    exit_code, output_tail, duration_ms}` each; `reason` says why one could not be checked.
    """
    checker = _Checker(task, link)
    return [checker.check(claim) for claim in claims]


class _Checker:
    """Check the claims of one hand-in, each command once."""

    def __init__(self, task: Task, link: SeatLink) -> None:
        self.task = task
        self.link = link
        self.workspace = Path(task.project.workspace) if task.project.workspace else None
        self.done: dict[Argv, Record] = {}
        self._toolchains: list[Toolchain] | None = None

    def check(self, claim: SpokenClaim) -> Record:
        """Check one claim."""
        record: Record = {
            "claim": claim.text, "key": claim.key, "kind": claim.kind, "path": claim.path,
            "verdict": UNVERIFIED, "reason": "", "params": {}, "why": "", "counts": None,
            "is_count_wrong": False, "argv": [], "exit_code": None, "output_tail": "",
            "duration_ms": None,
        }  # fmt: skip
        if claim.kind == FOOTNOTE:
            why = f"the text has no note {claim.path}"
            return record | {"verdict": CONTRADICTED, "why": why}
        if self.workspace is None:
            return record | unchecked("no_workspace")
        if claim.kind == "file":
            return record | self._check_named(self.workspace, claim)
        if not sandbox_report().is_code_of_agents_run:
            return record | unchecked("no_sandbox")
        return record | self._check_commands(claim)

    def _check_named(self, workspace: Path, claim: SpokenClaim) -> Record:
        """Look for a file that was said to be made, or that a document cites.

        What is cited is looked for from the root, beside its document, and among what is kept.
        """
        found = self._check_file(workspace, claim.path)
        if claim.folder is None or found["verdict"] == PROVEN:
            return found
        beside = posixpath.normpath(posixpath.join(claim.folder, claim.path))
        if _is_folder(workspace, beside):
            return {"verdict": PROVEN, "why": f"{claim.path} is a folder", "path": beside}
        near = self._check_file(workspace, beside)
        if near["verdict"] == CONTRADICTED and self._is_kept({claim.path, beside}):
            return {"verdict": PROVEN, "why": f"{claim.path} was handed in"}
        return near

    def _is_kept(self, names: set[str]) -> bool:
        """Whether something of that name was handed in with this work or locked before it."""
        handed_in = self.task.outputs.filter(title__in=names, is_orphan=False)
        locked = Artifact.objects.filter(project=self.task.project, name__in=names)
        return handed_in.exists() or locked.exists()

    def _check_file(self, workspace: Path, path: str) -> Record:
        relative = path
        if path.startswith("/"):
            root = workspace.resolve()
            if not Path(path).is_relative_to(root):
                return unchecked("outside", path=path)
            relative = str(Path(path).relative_to(root))
        try:
            size = artifact_exists(workspace, relative)
        except CountersignError as error:
            return unchecked("unreadable", detail=error.detail)
        if size is None:
            return {"verdict": CONTRADICTED, "why": f"there is no {path} in the workspace"}
        return {"verdict": PROVEN, "why": f"{path} exists, {size} bytes", "path": relative}

    def _check_commands(self, claim: SpokenClaim) -> Record:
        runs = []
        for toolchain in self.toolchains():
            if claim.toolchain in ("", toolchain.name):
                choices = toolchain.build if claim.kind == "build" else toolchain.test
                if choices:
                    runs.append(self._run_first(claim.kind, choices))
        if not runs:
            return unchecked("no_way", what=claim.kind)
        worst = min(runs, key=lambda run: _RANK[run["verdict"]])
        if claim.kind == "test" and worst["verdict"] != UNVERIFIED:
            return _compare(claim, worst, runs)
        return worst

    def toolchains(self) -> list[Toolchain]:
        """Detect the toolchains of the workspace, once."""
        if self._toolchains is None and self.workspace is not None:
            names = [one.name for one in self.workspace.iterdir()]
            self._toolchains = detect_toolchains(
                names, self._read, self.task.project.policy.checks.toolchains
            )
        return self._toolchains or []

    def _read(self, name: str) -> str:
        return _text_of(self.workspace, name) if self.workspace is not None else ""

    def _run_first(self, kind: str, choices: Sequence[Argv]) -> Record:
        """Run the first alternative whose tool is there."""
        run: Record = {}
        for argv in choices:
            run = self._run(kind, argv)
            if not run["is_tool_missing"]:
                break
        return run

    def _run(self, kind: str, argv: Argv) -> Record:
        if argv not in self.done:
            checks = self.task.project.policy.checks
            seconds = checks.build_seconds if kind == "build" else checks.test_seconds
            command = VerificationCommand(argv=argv, timeout_seconds=seconds)
            self.link.log(f"$ {command.text}\n")
            self.done[argv] = _judge_run(kind, run_one(self.task, command, self.link))
        return self.done[argv]


_RANK = {CONTRADICTED: 0, UNVERIFIED: 1, PROVEN: 2}


def _judge_run(kind: str, run: Record) -> Record:
    """Say what one run of our own shows, before any count is compared."""
    tail = run["output_tail"]
    counts = read_counts(tail) if kind == "test" else None
    is_missing = run["outcome"] in NO_TOOL or _lacks_module(run)
    found: Record = {"verdict": PROVEN, "why": ""}
    words = " ".join(run["argv"])[:80]
    if is_missing:
        found = unchecked("tool_missing", tool=" ".join(_tool_of(run)))
    elif run["outcome"] in NOT_FINISHED:
        found = unchecked("not_finished", command=words, outcome=run["outcome"])
    elif kind == "test" and ran_nothing(run["argv"], tail, run["exit_code"]):
        found = unchecked("no_tests", command=words)
    elif not run["ok"] and is_environment_failure(tail):
        found = unchecked("environment", command=words)
    elif not run["ok"]:
        found = {"verdict": CONTRADICTED, "why": f"{words}: exit {run['exit_code']}"}
    return found | {
        "is_tool_missing": is_missing,
        "counts": [counts.passed, counts.failed] if counts is not None else None,
        "argv": run["argv"], "exit_code": run["exit_code"], "output_tail": tail,
        "duration_ms": run["duration_ms"],
    }  # fmt: skip


def _lacks_module(run: Record) -> bool:
    is_module = list(run["argv"][1:2]) == ["-m"]
    return is_module and f"No module named {run['argv'][2]}" in run["output_tail"]


def _tool_of(run: Record) -> list[str]:
    """The words that name what is missing: a program, or a module of Python."""
    is_module = list(run["argv"][1:2]) == ["-m"]
    return list(run["argv"][:3] if is_module else run["argv"][:1])


def _compare(claim: SpokenClaim, worst: Record, runs: Sequence[Record]) -> Record:
    """Compare claimed counts with those of our own runs."""
    if claim.passed is None:
        return worst
    known = [run["counts"] for run in runs]
    if any(one is None for one in known):
        if worst["verdict"] == CONTRADICTED and claim.failed is None:
            return worst
        return worst | unchecked("no_counts")
    passed, failed = sum(one[0] for one in known), sum(one[1] for one in known)
    expected = claim.failed or 0
    counted: Record = {"counts": [passed, failed]}
    if (passed, failed) == (claim.passed, expected):
        why = f"{passed} passed, {failed} failed, as claimed"
        return worst | counted | {"verdict": PROVEN, "why": why}
    why = f"claimed {claim.passed} passed, {expected} failed; ran {passed} passed, {failed} failed"
    return worst | counted | {"verdict": CONTRADICTED, "why": why, "is_count_wrong": True}
