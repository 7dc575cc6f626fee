"""Handing in: outputs as content, path or file, and the hand-off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from orchestration.models import Output, Project
from orchestration.services.outputs import MAX_OUTPUT_BYTES
from tests.api.callers import Caller, agent_client, problem

TASKS = "/api/projects/demo/tasks"
HANDOFF = {"comment_type": "handoff", "body": "Decided: none. Problems: none. Advice: go on."}
NOTE = {"title": "note", "content": "the work", "type": "document"}


@pytest.mark.parametrize(
    ("handed_in", "code"),
    [
        ((), "missing_output"),
        (("comments",), "missing_output"),
        (("outputs",), "missing_handoff"),
    ],
)
def test_review_names_what_is_missing(
    agent: Caller, held: str, handed_in: Sequence[str], code: str
) -> None:
    for call in handed_in:
        agent.send(f"{held}/{call}", {"outputs": NOTE, "comments": HANDOFF}[call])
    problem(agent.send(f"{held}/status", {"status": "review"}), 409, code)
    assert agent.read(held)["status"] == "working"


def test_handoff_that_is_too_long_names_its_length(agent: Caller, held: str) -> None:
    found = problem(
        agent.send(f"{held}/comments", {"comment_type": "handoff", "body": "x" * 501}),
        422,
        "handoff_invalid",
    )
    assert "501" in found["errors"][0]["message"]
    structured = {"completed": "all of it", "artifacts": ["a.txt"], "advice": ["y" * 600]}
    kept = agent.send(f"{held}/comments", {"comment_type": "handoff", "body": structured})
    assert kept.status_code == 201


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"title": "t"}, ""),
        ({"title": "t", "content": "c", "path": "a.txt"}, ""),
        ({"content": "c"}, "title"),
        ({"title": "t", "content": "c", "type": "film"}, "type"),
        ({"title": "t", "path": "../out"}, "path"),
        ({"title": "t", "path": "/etc/passwd"}, "path"),
        ({"title": "t", "content": "c", "assertions": [{"claim": "x", "confidence": "verified"}]},
         "assertions.0"),
        ({"title": "t", "content": "c", "verified": True}, "verified"),
    ],
)  # fmt: skip
def test_bad_output_is_422(agent: Caller, held: str, body: dict[str, Any], path: str) -> None:
    answer = agent.send(f"{held}/outputs", body)
    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"][0]["path"] == path
    assert not Output.objects.exists()


def test_content_over_one_megabyte_is_413(agent: Caller, held: str) -> None:
    big = {"title": "t", "content": "x" * (1024 * 1024 + 1)}
    problem(agent.send(f"{held}/outputs", big), 413, "too_large")


def test_path_is_read_inside_the_workspace_only(
    agent: Caller, held: str, project: Project, tmp_path: Path
) -> None:
    workspace = Path(project.workspace)
    (workspace / "made.txt").write_text("made", encoding="utf-8")
    (workspace / "way_out").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    made = agent.send(f"{held}/outputs", {"title": "t", "path": "made.txt"})
    assert made.json()["size_bytes"] == 4
    for path in ("way_out/secret", "missing.txt", "."):
        answer = agent.send(f"{held}/outputs", {"title": "t", "path": path})
        assert answer.status_code == 422, path
    assert Output.objects.count() == 1


def test_uploaded_file_becomes_a_file_of_the_workspace(
    agent: Caller, held: str, project: Project
) -> None:
    claims = '[{"claim": "c", "confidence": "inferred", "reasoning": "r"}]'

    def upload(name: str, data: bytes) -> Any:
        form = {
            "file": SimpleUploadedFile(name, data),
            "title": "Report",
            "type": "data",
            "assertions": claims,
        }
        return agent.post(f"{held}/outputs", form, format="multipart")

    first = upload("../../etc/报告.bin", b"\x00\xff")
    assert first.status_code == 201
    path = first.json()["path"]
    assert path.startswith("uploads/DEMO-1/")
    assert path.endswith("-报告.bin")
    assert (Path(project.workspace) / path).read_bytes() == b"\x00\xff"
    assert first.json()["assertions"][0]["claim"] == "c"
    second = upload("报告.bin", b"other")
    assert second.json()["path"] != path
    assert (Path(project.workspace) / path).read_bytes() == b"\x00\xff"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"title": "t"}, 422),
        ({"file": "text, no file", "title": "t"}, 422),
        ({"file": SimpleUploadedFile("a", b"a")}, 422),
        ({"file": SimpleUploadedFile("a", b"a"), "title": "t", "assertions": "[{"}, 400),
        ({"file": SimpleUploadedFile("a", b"a"), "title": "t", "nope": "1"}, 422),
    ],
)
def test_bad_upload_is_refused(agent: Caller, held: str, form: dict[str, Any], status: int) -> None:
    assert agent.post(f"{held}/outputs", form, format="multipart").status_code == status
    assert not Output.objects.exists()


def test_claims_of_an_upload_may_come_as_a_file(agent: Caller, held: str) -> None:
    def upload(claims: bytes) -> Any:
        form = {
            "file": SimpleUploadedFile("a.txt", b"a"),
            "title": "t",
            "assertions": SimpleUploadedFile("claims.json", claims),
        }
        return agent.post(f"{held}/outputs", form, format="multipart")

    made = upload(b'[{"claim": "c", "confidence": "inferred", "reasoning": "r"}]')
    assert made.json()["assertions"][0]["claim"] == "c"
    problem(upload(b"[{"), 400, "malformed")
    problem(upload(b" " * (1024 * 1024 + 1)), 413, "too_large")
    refused = problem(upload(b'{"claim": "c"}'), 422, "invalid")
    assert refused["errors"][0]["path"] == "assertions"


def test_other_field_that_comes_as_a_file_is_refused_by_its_name(agent: Caller, held: str) -> None:
    form = {
        "file": SimpleUploadedFile("a.txt", b"a"),
        "title": "t",
        "summary": SimpleUploadedFile("s.txt", b"s"),
    }
    answer = agent.post(f"{held}/outputs", form, format="multipart")
    assert problem(answer, 422, "invalid")["errors"][0]["path"] == "summary"


@pytest.mark.parametrize(
    "title", ["a\nb", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "\ufeffa", "a\x85b"]
)
def test_title_that_hides_or_turns_text_is_refused(agent: Caller, held: str, title: str) -> None:
    answer = agent.send(f"{held}/outputs", {"title": title, "content": "c"})
    [fault] = problem(answer, 422, "invalid")["errors"]
    assert fault["path"] == "title"
    assert "U+" in fault["message"]
    form = {"file": SimpleUploadedFile("a", b"a"), "title": title}
    assert agent.post(f"{held}/outputs", form, format="multipart").status_code == 422
    assert not Output.objects.exists()


@pytest.mark.parametrize("title", ["报告 👩\u200d💻", "naïve café", "مرحبا", "a|b`c"])
def test_title_in_any_script_is_kept(agent: Caller, held: str, title: str) -> None:
    answer = agent.send(f"{held}/outputs", {"title": title, "content": "c"})
    assert answer.json()["title"] == title


def test_upload_over_the_limit_is_413(agent: Caller, held: str) -> None:
    data = SimpleUploadedFile("big", b"x" * (MAX_OUTPUT_BYTES + 1))
    form = {"file": data, "title": "t"}
    problem(agent.post(f"{held}/outputs", form, format="multipart"), 413, "too_large")


def test_upload_of_one_who_never_held_the_task_is_not_written(project: Project, held: str) -> None:
    stranger = agent_client(project, name="stranger")
    form = {"file": SimpleUploadedFile("stranger.txt", b"a"), "title": "t"}
    answer = stranger.post(f"{held}/outputs", form, format="multipart")
    problem(answer, 409, "lease_lost")
    problem(stranger.send(f"{held}/outputs", NOTE), 409, "lease_lost")
    assert not list(Path(project.workspace).rglob("*-stranger.txt"))
    assert not Output.objects.exists()


def test_late_output_is_kept_once_as_an_orphan_and_names_the_holder(
    project: Project, agent: Caller, held: str
) -> None:
    agent.send(f"{held}/release", {"reason": "shift ends"})
    second = agent_client(project, name="second")
    second.send(f"{held}/claim")
    for _ in range(2):
        found = problem(agent.send(f"{held}/outputs", NOTE), 409, "lease_lost")
        assert found["holder"] == "second"
    orphan = Output.objects.get()
    assert (orphan.is_orphan, orphan.content) == (True, "the work")
    second.send(f"{held}/status", {"status": "working"})
    second.send(f"{held}/comments", HANDOFF)
    problem(second.send(f"{held}/status", {"status": "review"}), 409, "missing_output")
