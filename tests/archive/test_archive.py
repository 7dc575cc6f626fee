"""The delivery archive: every section from facts, hostile words harmless, once a root."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from orchestration.contracts.archive import ArchiveDocument
from orchestration.models import (
    Artifact,
    ChangelogEntry,
    DeliveryArchive,
    Experience,
    Project,
    Task,
)
from orchestration.rules.archive_words import TABLES
from orchestration.services.archive import final_report
from orchestration.services.archive_zip import pack_archive, zip_name
from orchestration.services.cancelling import cancel_tree
from orchestration.services.changelog import write_changelog, write_waiting_changelogs
from orchestration.services.intake import submit_message
from orchestration.services.lookups import lock_task
from orchestration.services.work import Actor, unit_of_work
from orchestration.states import TaskStatus
from tests.factories import (
    agent_step,
    child,
    decide,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
HOSTILE = "</td>|`` ```\n# Owned [x](javascript:alert(1)) <script>alert(1)</script> ~~~ \u202e1. a"
SHA256 = re.compile(r"[0-9a-f]{64}")


@pytest.fixture
def project() -> Project:
    return new_project()


def delivered(project: Project) -> Task:
    """Carry a small plan through to done."""
    root = submit_plan(
        project,
        step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
        step("2", after=["1"], verify=["grep hi made.txt"]),
        text="make and check a file",
    )
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    return root


def read(root: Task) -> tuple[ArchiveDocument, str]:
    """The newest archive of a root, as document and as Markdown."""
    row = DeliveryArchive.objects.filter(task=root).order_by("number").last()
    assert row is not None
    document = ArchiveDocument.model_validate_json(bytes(row.document.content.data))
    return document, bytes(row.markdown.content.data).decode()


def test_a_done_root_has_an_archive_with_every_section_and_true_digests(project: Project) -> None:
    root = delivered(project)
    document, text = read(root)
    assert document.audit.state == "PASSED"
    assert [row.step for row in document.problem.results] == ["1", "2"]
    assert {row.outcome for row in document.problem.results} == {"done"}
    assert document.implementation.diagram.splitlines() == [
        "flowchart LR", '    s1["1 do 1"]', '    s2["2 do 2"]', "    s1 --> s2",
    ]  # fmt: skip
    assert document.implementation.flows[0].artifacts == ("Run record", "made.txt")
    assert ("2", "verify", "grep hi made.txt") in [
        (row.step, row.use, row.command) for row in document.use.commands
    ]
    listed = {row.path: row for row in document.deliveries}
    locked = Artifact.objects.get(task=child(root, "1"), name="made.txt")
    assert listed["made.txt"].sha256 == locked.content_id
    assert listed["made.txt"].size_bytes == 3
    for number in range(1, 7):
        assert re.search(rf"^## {number}\. ", text, re.MULTILINE)
    assert "**PASSED**" in text


def test_sections_1_to_4_are_never_empty(project: Project) -> None:
    root = submit_plan(project, step("1", run=["sh -c 'exit 0'"]))
    drive(project)
    document, text = read(root)
    sections = dict(re.findall(r"^## (\d)\. .*\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE))
    for number in "1234":
        said = [line for line in sections[number].splitlines() if line.strip()]
        assert [line for line in said if not line.startswith("#")], number
    assert document.problem.results
    assert document.implementation.diagram
    assert document.use.commands
    assert document.audit.checks


def test_the_archive_is_locked_and_its_row_cannot_change(project: Project) -> None:
    root = delivered(project)
    archive = DeliveryArchive.objects.get(task=root)
    names = set(root.artifacts.values_list("name", flat=True))
    assert names >= {"delivery-archive.md", "delivery-archive.json"}
    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        DeliveryArchive.objects.filter(pk=archive.pk).update(number=9)
    assert project.events.filter(kind="archive.written", task=root).count() == 1


def test_the_archive_speaks_the_language_of_its_project() -> None:
    project = new_project()
    Project.objects.filter(pk=project.pk).update(language="zh-hans")
    _, text = read(delivered(project))
    assert text.startswith("# 《代码全景图与交付档案》 make and check a file")
    assert "## 4. 审计与合规" in text


def test_both_tables_of_words_have_the_same_keys_and_fields() -> None:
    fields = re.compile(r"\{(\w+)\}")
    english, chinese = TABLES["en"], TABLES["zh-hans"]
    assert english.keys() == chinese.keys()
    for key in english:
        assert sorted(fields.findall(english[key])) == sorted(fields.findall(chinese[key])), key


def test_messages_and_direct_tasks_get_no_archive(project: Project) -> None:
    submit_message(project_id=project.pk, text="thanks", actor=Actor("human:sir"))
    submit_message(project_id=project.pk, text="Rename x to y in a.txt", actor=Actor("human:sir"))
    drive(project)
    assert not DeliveryArchive.objects.exists()


def test_hostile_words_break_neither_markdown_nor_mermaid_nor_json(project: Project) -> None:
    root = submit_plan(
        project, {**step("1"), "action": HOSTILE, "resources": []}, text=f"{HOSTILE} title"
    )
    drive(project)
    document, text = read(root)
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    heads = [line for line in outside.splitlines() if line.startswith("#")]
    assert len([line for line in heads if line.startswith("## ")]) == 6
    assert not any(line.startswith("# Owned") for line in heads)
    assert "<script>" not in outside
    assert "](javascript" not in outside
    assert "\u202e" not in text
    for drawn in re.findall(r"(?:^\|.*\n?)+", outside, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in drawn.splitlines()}
        assert len(widths) == 1, drawn
    label = re.search(r'\["(.*)"\]', document.implementation.diagram)
    assert label is not None
    assert not set('"<>`[]') & set(label[1])
    assert document.problem.results[0].title == child(root, "1").title


def test_the_zip_holds_documents_and_artifacts_under_safe_names(project: Project) -> None:
    root = delivered(project)
    archive = DeliveryArchive.objects.get(task=root)
    with pack_archive(archive) as file, zipfile.ZipFile(file) as packed:
        names = packed.namelist()
        assert names[:3] == ["archive.md", "archive.json", "changelog-entry.md"]
        listed = json.loads(packed.read("manifest.json"))
        one = next(row for row in listed if row["path"] == "made.txt")
        assert packed.read(one["file"]) == b"hi\n"
        assert packed.read("archive.json") == bytes(archive.document.content.data)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("../../etc/passwd", "artifacts/00001-passwd"),
        ("..", "artifacts/00001-artifact"),
        ("a/.ssh", "artifacts/00001-ssh"),
        ("C:\\x\\y:z", "artifacts/00001-C_x_y_z"),
        ("报告 1.md", "artifacts/00001-报告_1.md"),
        ("a\x00\n|b", "artifacts/00001-a_b"),
    ],
)
def test_no_artifact_name_leads_out_of_the_zip(path: str, name: str) -> None:
    assert zip_name(1, path) == name


def test_exceptions_are_named_with_who_and_why(project: Project) -> None:
    root = submit_plan(
        project,
        step("1", run=["ls missing.txt"], on_failure={"severity": "medium"}),
    )
    drive(project)
    decide(open_decision_of(project), "accept_as_is", reason="known, harmless")
    drive(project)
    document, text = read(root)
    assert document.audit.state == "PASSED WITH EXCEPTIONS"
    assert "human:sir: known, harmless" in document.audit.exceptions[0]
    assert [(row.status, row.outcome) for row in document.audit.findings] == [
        ("OPEN", "accepted_as_is")
    ]
    assert document.audit.decisions[0].by == "human:sir"
    assert "**PASSED WITH EXCEPTIONS**" in text


@pytest.fixture
def waived(project: Project) -> Task:
    root = submit_plan(project, step("1", run=["false"]))
    drive(project)
    decide(open_decision_of(project, "max_retries"), "waive", reason="good enough for the demo")
    drive(project)
    return root


def test_a_waived_root_has_a_waiver_record_instead(project: Project, waived: Task) -> None:
    archive = DeliveryArchive.objects.get(task=waived)
    document, text = read(waived)
    assert (archive.kind, archive.has_exceptions) == ("waiver", True)
    assert document.audit.state == "PASSED WITH EXCEPTIONS"
    assert document.audit.exceptions[0] == "waived by human:sir: good enough for the demo"
    assert len([one for one in document.audit.lessons if "failed" in one.source]) >= 3
    assert text.startswith("# 《Waiver record》")


def test_the_final_report_lists_waived_and_cancelled_roots_with_reasons(
    project: Project, waived: Task
) -> None:
    gone = submit_plan(project, step("1", run=()), text="never wanted")
    with unit_of_work(Actor("human:sir")) as work:
        cancel_tree(work, lock_task(gone.pk), why="not | needed")
    done = delivered(project)
    report = final_report(fresh(done).project)
    assert "**PASSED WITH EXCEPTIONS**" in report
    assert re.search(r"## Waived\n\n.*human\\:sir.*good enough for the demo", report, re.DOTALL)
    assert re.search(r"## Cancelled\n\n.*never wanted.*not \\\| needed", report, re.DOTALL)
    assert "2 tasks done, 1 of them waived; 1 cancelled." in report


def test_a_report_without_exceptions_says_passed(project: Project) -> None:
    root = delivered(project)
    assert "**PASSED**" in final_report(fresh(root).project)


def test_changelog_entries_go_to_the_workspace_newest_first(project: Project) -> None:
    workspace = Path(project.workspace)
    delivered(project)
    assert write_changelog(project.pk)
    second = submit_plan(project, step("1"), text="a later task")
    drive(project)
    assert fresh(second).status == TaskStatus.DONE
    assert write_waiting_changelogs() == 1
    text = (workspace / "CHANGELOG.md").read_text()
    assert text.startswith("# Changelog\n\n## ")
    assert text.index("a later task") < text.index("make and check a file")
    assert "`made.txt`" in text
    assert "result PASSED" in text
    assert not write_changelog(project.pk)


def test_a_persons_changelog_is_kept_and_an_entry_stands_there_once(project: Project) -> None:
    path = Path(project.workspace) / "CHANGELOG.md"
    mine = (
        b"# Changes \xff\r\n\r\nAll of them.\r\n\r\n```\r\n## no head\r\n```\r\n\r\n"
        b"## 1.0\r\n- x\r\n"
    )
    path.write_bytes(mine)
    path.chmod(0o640)
    delivered(project)
    write_changelog(project.pk)
    written = path.read_bytes()
    head, rest = mine[: mine.index(b"## 1.0")], mine[mine.index(b"## 1.0") :]
    assert written.startswith(head + b"## ")
    assert written.endswith(b"\r\n\r\n" + rest)
    assert b"\n" not in written.replace(b"\r\n", b"")
    assert path.stat().st_mode & 0o777 == 0o640
    ChangelogEntry.objects.update(written_at=None)
    write_changelog(project.pk)
    assert path.read_bytes() == written


def test_a_symlinked_changelog_is_refused_and_the_entry_says_why(
    project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    (Path(project.workspace) / "CHANGELOG.md").symlink_to(outside)
    delivered(project)
    write_changelog(project.pk)
    assert outside.read_text() == "mine"
    entry = ChangelogEntry.objects.get(project=project)
    assert entry.written_at is None
    assert "symlink" in entry.problem
    for _ in range(9):
        write_waiting_changelogs()
    entry.refresh_from_db()
    assert entry.tries == 5


def test_without_a_workspace_the_entry_is_part_of_the_archive_only(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(workspace="")
    root = submit_plan(project, agent_step("1"), text="think about it")
    drive(project)
    agent = new_agent(project=project)
    execute(child(root, "1"), agent)
    drive(project)
    entry = ChangelogEntry.objects.get(project=project)
    assert entry.written_at is not None
    assert "no workspace" in entry.problem
    archive = DeliveryArchive.objects.get(task=root)
    with pack_archive(archive) as file, zipfile.ZipFile(file) as packed:
        assert b"think about it" in packed.read("changelog-entry.md")


def test_experiences_come_from_archives_and_failures_once_each(project: Project) -> None:
    root = submit_plan(project, step("1", run=["false"]), text="build the parser of logs")
    drive(project)
    found = Experience.objects.filter(project=project, kind="failure")
    assert found.count() == 1
    row = found.get()
    assert (row.author, row.task_id) == ("system", root.pk)
    assert "Written by the system" in row.body
    assert row.terms.filter(term="parser").exists()
    decide(open_decision_of(project, "max_retries"), "waive", reason="enough")
    assert Experience.objects.filter(project=project, kind="archive", task=root).count() == 1
