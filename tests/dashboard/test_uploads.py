"""Uploads: a playbook or a master list, all of it or none, each fault with its line."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from orchestration.models import AuditEvent, Project, Task
from orchestration.workflows.uploads import MAX_UPLOAD_BYTES, SHIPPED
from tests.factories import drive, new_project, open_decision_of

PLAYBOOK = """title: Say hello
steps:
  - id: one
    action: write it
    run: ["true"]
"""


@pytest.fixture
def project(db: None) -> Project:
    return new_project("intake")


def send(
    client: Client,
    text: str | bytes,
    name: str = "list.yaml",
    slug: str = "intake",
    language: str = "en",
) -> object:
    data = text.encode() if isinstance(text, str) else text
    sent = {"project": slug, "file": SimpleUploadedFile(name, data)}
    return client.post("/new/upload/", sent, headers={"Accept-Language": language})


def faults(answer: object) -> list[tuple[str, str]]:
    """The lines and places of the faults that the page lists."""
    page = answer.content.decode()  # type: ignore[attr-defined]
    found = re.findall(r'<td class="num mono">(\d*)</td><td class="mono">([^<]*)</td>', page)
    return [(line, place) for line, place in found]


def test_playbook_becomes_one_task_and_its_commands_are_not_trusted(
    sir: User, sir_client: Client, project: Project
) -> None:
    answer = send(sir_client, PLAYBOOK, "hello.yaml")
    assert answer.status_code == 303, answer.content.decode()[-2000:]  # type: ignore[attr-defined]
    root = Task.objects.get(parent=None)
    assert answer["Location"] == f"/projects/intake/tasks/{root.pk}/"  # type: ignore[index]
    assert root.title == "Say hello"
    plan = root.plans.get()
    assert not plan.is_trusted


@pytest.mark.parametrize("name", ["list.yaml", "list.json"])
def test_master_list_becomes_its_tasks(
    name: str, sir: User, sir_client: Client, project: Project
) -> None:
    entries = {"a": {"status": "PENDING"}, "b": {"status": "COMPLETED", "depends_on": ["a"]}}
    text = json.dumps({"master_task_list": entries}, indent="\t" if name.endswith("json") else 2)
    answer = send(sir_client, text, name)
    assert answer.status_code == 303, answer.content.decode()[-2000:]  # type: ignore[attr-defined]
    assert answer["Location"] == "/projects/intake/"  # type: ignore[index]
    assert list(Task.objects.order_by("number").values_list("external_key", flat=True)) == [
        "a",
        "b",
    ]


def test_one_fault_keeps_everything_out_and_each_has_its_line(
    sir: User, sir_client: Client, project: Project
) -> None:
    text = "a:\n  status: PENDING\nb:\n  status: MAYBE\nc:\n  status: PENDING\n  rank: high\n"
    events = AuditEvent.objects.count()
    answer = send(sir_client, text)
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert faults(answer) == [("4", "b.status"), ("7", "c.rank")]
    assert b"Nothing was taken in." in answer.content  # type: ignore[attr-defined]
    assert not Task.objects.exists()
    assert AuditEvent.objects.count() == events


def test_faulty_playbook_names_its_lines(sir: User, sir_client: Client, project: Project) -> None:
    text = PLAYBOOK.replace("run:", "rum:") + "  - id: two\n    depends_on: [nowhere]\n"
    answer = send(sir_client, text, "bad.yaml")
    assert answer.status_code == 422  # type: ignore[attr-defined]
    lines = [line for line, _place in faults(answer)]
    assert lines
    assert all(lines)
    assert not Task.objects.exists()


def test_playbook_that_needs_files_beside_it_is_refused_with_its_line(
    sir: User, sir_client: Client, project: Project
) -> None:
    text = PLAYBOOK.replace('["true"]', '["sh {playbook_dir}/run.sh"]')
    answer = send(sir_client, text, "tools.yaml")
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert faults(answer) == [("3", "steps.0")]
    page = answer.content.decode()  # type: ignore[attr-defined]
    assert "Write the full path on the server" in page
    assert "manage.py run_playbook FILE --project SLUG" in page
    zh = send(sir_client, text, "tools.yaml", language="zh-hans")
    assert "请写服务器上的完整路径" in zh.content.decode()  # type: ignore[attr-defined]
    assert not Task.objects.exists()


@pytest.mark.parametrize("name", sorted(path.name for path in SHIPPED.glob("*.yaml")))
def test_playbook_that_was_shipped_finds_its_files_and_its_commands_wait_for_sir(
    name: str, sir: User, sir_client: Client, project: Project
) -> None:
    answer = send(sir_client, (SHIPPED / name).read_bytes(), name)
    assert answer.status_code == 303, answer.content.decode()[-2000:]  # type: ignore[attr-defined]
    drive(project)
    asked = open_decision_of(project, "command_approval").content["commands"]
    words = [word for one in asked for word in one["argv"]]
    assert str(SHIPPED / "tools" / "inventory.py") in words
    assert not [word for word in words if "{" in word and "playbook_dir" in word]


def test_shipped_playbook_that_was_changed_has_no_files_beside_it(
    sir: User, sir_client: Client, project: Project
) -> None:
    text = (SHIPPED / "demo.yaml").read_bytes() + b"# mine\n"
    answer = send(sir_client, text, "demo.yaml")
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert all(line for line, _place in faults(answer))


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(ord('a') + n)}: &{chr(ord('a') + n)} [{', '.join(['*' + chr(ord('a') + n - 1)] * 9)}]\n"
    for n in range(1, 12)
)
HOSTILE = {
    "aliases that multiply": BOMB,
    "nesting without end": "[" * 10_000,
    "a tag that calls": "a: !!python/object/apply:os.system ['true']\n",
    "an alias to itself": "a: &a [*a]\n",
    "a key given twice": "a: {status: PENDING}\na: {status: PENDING}\n",
    "no text": b"\xff\xfe\x00",
    "nothing": "",
    "a list": "- a\n- b\n",
    "a word": "hello",
    "numbers as keys": "1: {status: MAYBE}\n",
    "markup": "<script>alert(1)</script>: {status: x}\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_file_is_refused_and_changes_nothing(
    text: str | bytes, sir: User, sir_client: Client, project: Project
) -> None:
    answer = send(sir_client, text, "../../<b>x</b>.yaml")
    assert answer.status_code == 422, answer.status_code  # type: ignore[attr-defined]
    page = answer.content.decode()  # type: ignore[attr-defined]
    assert "<b>x</b>" not in page
    assert "<script>alert" not in page
    assert not Task.objects.exists()


def test_file_over_the_limit_is_refused(sir: User, sir_client: Client, project: Project) -> None:
    answer = send(sir_client, b"#" * (MAX_UPLOAD_BYTES + 1))
    assert answer.status_code == 413  # type: ignore[attr-defined]
    missing = sir_client.post("/new/upload/", {"project": "intake"})
    assert missing.status_code == 422
    assert b"Choose a file first." in missing.content


def test_only_sir_uploads(viewer_client: Client, client: Client, project: Project) -> None:
    for who in (viewer_client, client):
        assert send(who, PLAYBOOK).status_code == 403  # type: ignore[attr-defined]
    assert b'type="file"' not in viewer_client.get("/new/").content
    assert not Task.objects.exists()


def test_unknown_project_is_not_found(sir: User, sir_client: Client, project: Project) -> None:
    assert send(sir_client, PLAYBOOK, slug="nowhere").status_code == 404  # type: ignore[attr-defined]


STEP = "title: t\nsteps:\n  - id: a\n    action: do\n"
LIST = "a:\n  title: t\n"
FAULTY = (
    "- 1\n- 2\n",
    "title: t\nsteps: [\n",
    "title: t\n\tsteps: 1\n",
    "a: {title: t, rank: x}\n",
    "a:\n  title: [1]\n  depends_on: [nobody, a]\n  status: LATER\n",
    "a:\n  title: t\na:\n  title: u\n",
    "a:\n  - 1\nb: 3\n",
    "a:\n  title: t\n  depends_on: [b]\nb:\n  title: u\n  depends_on: [a]\n",
    "a:\n  title: t: u\n",
    "a: *nothing\n",
    'a: "no end\n',
    "a:\n  title: t\n  made: 2026-01-01\n",
    LIST + "'':\n  title: u\n",
    "title: t\nsteps: []\n",
    STEP + "    depends_on: [a, zz]\n  - id: a\n    action: ''\n",
    STEP + "    run: ['ls | wc', 'ls \"', '', {cmd: ls, argv: [ls]}, {}, 3]\n",
    STEP + "    writes: [/etc/passwd, ../up, '']\n    phase: x\n    colour: red\n",
    STEP + "    expected_artifacts: [{}, 3]\n    risk_level: huge\n    irreversible: maybe\n",
    STEP + "    phase: 1\n    depends_on: [b]\n  - id: b\n    action: do\n    phase: 2\n",
    STEP + "    depends_on: [b]\n  - id: b\n    action: do\n    depends_on: [a]\n",
    STEP + "    scope: 3\n    verify: x\n  - action: do\n",
)


@pytest.mark.parametrize("text", FAULTY)
def test_faults_are_said_in_the_readers_language(
    text: str, sir: User, sir_client: Client, project: Project
) -> None:
    answer = send(sir_client, text, language="zh-hans")
    page = answer.content.decode()  # type: ignore[attr-defined]
    alert = page.partition('role="alert"')[2].partition("<p>")[2].partition("</p>")[0]
    rows = page.partition("fault-table")[2].partition("</table>")[0].partition("<tbody>")[2]
    said = re.findall(r"<td>(.*?)</td></tr>", rows)
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert len(said) == rows.count("<tr>")
    told = [re.sub(r"<[^>]+>", "", one) for one in (alert, *said)]
    assert [one for one in told if not re.search(r"[\u4e00-\u9fff]", one)] == []
