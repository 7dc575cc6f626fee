"""The operator's commands: what they make, what they print, and how they refuse bad input."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection

from orchestration.access import HumanRole, role_of
from orchestration.models import Agent, AuditEvent, AuditSeal, HumanToken, Project, Task
from orchestration.services.accounts import create_person
from orchestration.services.agents import agent_of_token, human_token_of
from orchestration.services.audit import seal_events
from orchestration.services.work import SYSTEM
from orchestration.states import Route, TaskStatus
from tests.commands.conftest import DEMO, EXAMPLES

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    return str(caught.value)


def stdin_of(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


class TestBootstrap:
    """The first start makes everything, the second one nothing."""

    def test_the_first_run_makes_sir_with_a_password_shown_once_and_the_demo(self) -> None:
        said = run("bootstrap")

        sir = User.objects.get(username="sir")
        password = said.split("with the password ")[1].split()[0]
        assert sir.check_password(password)
        assert role_of(sir) is HumanRole.SIR
        assert not sir.is_superuser
        assert set(Group.objects.values_list("name", flat=True)) >= {"sir", "viewer"}
        demo = Task.objects.get(project__slug="demo", parent__isnull=True)
        assert demo.status == TaskStatus.WORKING
        assert demo.plans.get().is_trusted
        assert (Path(demo.project.workspace) / "tidytext" / "excerpts.py").is_file()

    def test_a_second_run_changes_nothing_and_shows_no_password(self) -> None:
        run("bootstrap")
        before = (User.objects.get().password, AuditEvent.objects.count(), Task.objects.count())
        said = run("bootstrap")

        assert said == "Sign in as sir.\n"
        after = (User.objects.get().password, AuditEvent.objects.count(), Task.objects.count())
        assert before == after

    def test_a_chosen_password_is_used_and_not_printed(self, settings: Any) -> None:
        settings.SIR_USERNAME, settings.SIR_PASSWORD = "ada", "a chosen pass phrase"
        said = run("bootstrap", "--no-demo")

        assert User.objects.get(username="ada").check_password("a chosen pass phrase")
        assert "a chosen pass phrase" not in said

    def test_no_demo_means_no_project(self, settings: Any) -> None:
        run("bootstrap", "--no-demo")

        assert not Project.objects.exists()

    def test_what_an_earlier_start_left_half_made_is_finished(self, settings: Any) -> None:
        run("create_project", "demo")
        run("bootstrap")

        assert Task.objects.filter(project__slug="demo", external_key="demo").count() == 1

    def test_a_changed_workspace_is_never_overwritten(self) -> None:
        run("create_project", "demo")
        mine = Path(Project.objects.get().workspace) / "mine.txt"
        mine.write_text("mine", encoding="utf-8")
        run("bootstrap")

        assert mine.read_text(encoding="utf-8") == "mine"
        assert [one.name for one in mine.parent.iterdir()] == ["mine.txt"]

    def test_a_bad_user_name_is_one_clear_line(self, settings: Any) -> None:
        settings.SIR_USERNAME = "two words"

        assert "'two words' cannot be a user name" in refused("bootstrap")
        assert not User.objects.exists()


class TestCreateProject:
    """Projects by the operator."""

    def test_a_project_gets_a_workspace_of_its_own(self, settings: Any) -> None:
        assert "Created fresh" in run("create_project", "fresh")

        project = Project.objects.get(slug="fresh")
        assert Path(project.workspace).is_dir()
        assert Path(project.workspace).parent == settings.COUNTERSIGN_WORKSPACE_ROOTS[0]

    def test_naming_a_directory_allows_it(self, tmp_path: Path) -> None:
        run("create_project", "there", "--workspace", str(tmp_path / "new"))

        assert Project.objects.get().workspace == str(tmp_path / "new")
        assert (tmp_path / "new").is_dir()

    def test_the_data_directory_is_no_workspace(self, settings: Any) -> None:
        inside = settings.COUNTERSIGN_DATA_DIR / "elsewhere"

        said = refused("create_project", "in", "--workspace", str(inside))
        assert "own data directory" in said
        assert not Project.objects.exists()

    def test_a_file_is_no_workspace(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        said = refused("create_project", "in", "--workspace", str(tmp_path / "file"))
        assert "is not a directory" in said

    def test_a_policy_file_changes_what_it_names(self, tmp_path: Path) -> None:
        path = tmp_path / "policy.yaml"
        path.write_text("thresholds:\n  max_retries: 2\n", encoding="utf-8")
        run("create_project", "strict", "--policy", str(path))

        policy = Project.objects.get().policy
        assert policy.thresholds.max_retries == 2
        assert policy.thresholds.fix_rounds == 3

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("thresholds:\n  max_retry: 2\n", "line 2: thresholds.max_retry"),
            ("thresholds:\n  max_retries: many\n", "line 2: thresholds.max_retries"),
            ("- a\n", "must hold an object"),
            ("thresholds: [\n", "line 2: while parsing"),
        ],
    )
    def test_a_bad_policy_names_the_line(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "policy.yaml"
        path.write_text(text, encoding="utf-8")

        assert message in refused("create_project", "strict", "--policy", str(path))
        assert not Project.objects.exists()

    def test_bad_and_taken_slugs_are_refused(self) -> None:
        run("create_project", "one")

        assert "exists already" in refused("create_project", "one")
        assert "a slug is" in refused("create_project", "Not A Slug")


class TestSubmit:
    """Texts by the operator."""

    @pytest.fixture(autouse=True)
    def _project(self) -> None:
        run("create_project", "door")

    def test_a_message_is_submitted_and_its_route_said(self, settings: Any) -> None:
        said = run("submit", "door", "谢谢")

        assert said.startswith("DOOR-1 goes direct (S0: ")
        # With Redis the workers are elsewhere, and the command cannot know.
        assert ("No server is running" in said) is not bool(settings.REDIS_URL)
        event = AuditEvent.objects.filter(kind="task.pending").get()
        assert event.actor.startswith("operator:")

    def test_a_slash_command_names_its_route(self) -> None:
        assert "goes the way it named: three_step" in run("submit", "door", "/three-step Do it")
        assert Task.objects.get().route == Route.THREE_STEP

    def test_a_long_text_comes_by_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stdin_of(monkeypatch, ("重构整个系统。" * 20_000).encode())
        run("submit", "door", "-")

        assert len(Task.objects.get().description) == 140_000

    def test_a_megabyte_is_taken_and_one_byte_more_is_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stdin_of(monkeypatch, b"x" * 1_000_001)
        assert "1000001 bytes" in refused("submit", "door", "-")
        assert not Task.objects.exists()

        stdin_of(monkeypatch, b"x" * 1_000_000)
        run("submit", "door", "-")
        assert len(Task.objects.get().description) == 1_000_000

    def test_invalid_utf8_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stdin_of(monkeypatch, b"caf\xe9")

        assert "not valid UTF-8" in refused("submit", "door", "-")
        assert "not valid UTF-8" in refused("submit", "door", os.fsdecode(b"caf\xe9"))

    def test_what_cannot_be_submitted_is_refused_clearly(self) -> None:
        assert "There is no project 'nowhere'; there are door." in refused("submit", "nowhere", "x")
        assert "is empty" in refused("submit", "door", "  ")
        assert "known: /three-step" in refused("submit", "door", "/frobnicate it")


class TestRunPlaybook:
    """What `run_playbook` refuses before anything is started."""

    def test_what_cannot_be_run_is_one_clear_line(self, tmp_path: Path) -> None:
        readme = EXAMPLES / "sample_package" / "README.md"

        assert refused("run_playbook", "absent.yaml") == "There is no file 'absent.yaml'."
        assert "README.md, line 6: while scanning" in refused("run_playbook", str(readme))
        said = refused("run_playbook", str(DEMO), "--workspace", str(tmp_path / "absent"))
        assert "There is no directory" in said
        assert not Task.objects.exists()


class TestTokens:
    """Agents' and people's tokens."""

    def test_an_agents_token_is_printed_once_and_works(self) -> None:
        token = run("create_agent", "worker-1", "--quiet").strip()

        agent = agent_of_token(token)
        assert agent is not None
        assert agent.name == "worker-1"
        assert agent.scopes == ["observe", "execute"]
        assert token not in json.dumps(list(Agent.objects.values()), default=str)

    def test_scopes_and_projects_limit_an_agent(self) -> None:
        run("create_project", "one")
        said = run("create_agent", "评审", "--scopes", "review, observe", "--project", "one")

        agent = Agent.objects.get()
        assert agent.scopes == ["observe", "review"]
        assert [one.slug for one in agent.projects.all()] == ["one"]
        assert "in one." in said

    def test_bad_agents_are_refused(self) -> None:
        run("create_agent", "one")

        assert "already" in refused("create_agent", "one")
        assert "'fly' is none of" in refused("create_agent", "two", "--scopes", "fly")
        assert "There is no project" in refused("create_agent", "two", "--project", "nowhere")
        assert "name" in refused("create_agent", "two words")
        assert Agent.objects.count() == 1

    def test_a_personal_token_decides_only_when_asked_for(self) -> None:
        create_person(username="ada", password="x", role=HumanRole.SIR, actor=SYSTEM)
        reading = human_token_of(run("create_token", "ada", "--quiet").strip())
        deciding = human_token_of(run("create_token", "ada", "--allow-decide", "--quiet").strip())

        assert reading is not None
        assert not reading.can_decide
        assert deciding is not None
        assert deciding.can_decide

    def test_only_sir_gets_a_token_that_decides(self) -> None:
        create_person(username="eve", password="x", role=HumanRole.VIEWER, actor=SYSTEM)

        assert "may not decide" in refused("create_token", "eve", "--allow-decide")
        assert "nobody called" in refused("create_token", "mallory")
        assert not HumanToken.objects.exists()


@pytest.fixture
def sealed() -> int:
    """Some sealed events; gives their number."""
    run("create_project", "one")
    run("create_project", "two")
    run("submit", "one", "=1+1 谢谢")
    seal_events()
    return AuditSeal.objects.count()


class TestAudit:
    """Verify and export."""

    def test_an_untouched_trail_verifies(self, sealed: int) -> None:
        assert run("verify_audit") == f"The audit trail holds: {sealed} events verified.\n"

    def test_events_without_a_seal_yet_are_counted(self, sealed: int) -> None:
        run("create_project", "three")

        assert f"{sealed} events verified; 1 newer wait" in run("verify_audit")

    def test_one_changed_byte_is_found_and_its_event_named(self, sealed: int) -> None:
        event = AuditEvent.objects.order_by("pk")[1]
        with connection.cursor() as cursor:
            disarm_triggers(cursor)
            cursor.execute(
                "UPDATE orchestration_auditevent SET why = 'forged' WHERE id = %s", [event.pk]
            )

        said = refused("verify_audit")
        assert f"event {event.pk} ({event.kind} of {event.subject})" in said
        assert "was changed" in said

    def test_json_lines_hold_every_event_in_order(self, sealed: int) -> None:
        rows = [json.loads(line) for line in run("export_audit").splitlines()]

        assert [row["position"] for row in rows] == list(range(1, sealed + 1))
        assert rows[0]["kind"] == "project.created"

    def test_one_projects_events_are_exported_after_a_position(self, sealed: int) -> None:
        everything = [json.loads(line) for line in run("export_audit").splitlines()]
        some = run("export_audit", "--project", "two", "--after", "1").splitlines()

        wanted = str(Project.objects.get(slug="two").pk)
        assert [json.loads(line)["id"] for line in some] == [
            row["id"] for row in everything if row["project"] == wanted
        ]

    def test_csv_has_a_header_and_defuses_formulas(self, sealed: int, tmp_path: Path) -> None:
        target = tmp_path / "audit.csv"
        said = run("export_audit", "--format", "csv", "--output", str(target))

        lines = target.read_text(encoding="utf-8").splitlines()
        assert said == f"Wrote {sealed} events to audit.csv\n"
        assert lines[0].startswith("position,id,at,project,task,kind,actor")
        assert len(lines) == sealed + 1
        assert stat.S_IMODE(target.stat().st_mode) == 0o600

    def test_an_existing_file_is_never_overwritten(self, sealed: int, tmp_path: Path) -> None:
        target = tmp_path / "audit.jsonl"
        target.write_text("mine", encoding="utf-8")

        assert "cannot create" in refused("export_audit", "--output", str(target))
        assert target.read_text(encoding="utf-8") == "mine"


def disarm_triggers(cursor: Any) -> None:
    """Break the seal's guard the way somebody with the database's password could."""
    if connection.vendor == "postgresql":
        cursor.execute("SET LOCAL session_replication_role = replica")
        return
    cursor.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' "
        "AND tbl_name = 'orchestration_auditevent'"
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP TRIGGER {name}")
