"""What a playbook file may hold: each fault is one clear message, with its line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from django.conf import settings

from orchestration.contracts.plan import MAX_PLAN_BYTES
from orchestration.contracts.yaml_text import MAX_YAML_VALUES, YamlInvalid, parse_yaml
from orchestration.errors import Invalid, NotFound, PlanInvalid, TooLarge
from orchestration.policy import DEFAULT_POLICY
from orchestration.workflows.playbook import PlaybookInvalid, read_playbook, require_audited
from tests.commands.conftest import EXAMPLES

GOOD = """\
title: Two steps
steps:
  - id: a
    action: Say hello
    run: ["echo hello"]
  - id: b
    action: Say more
    depends_on: [a]
    run: ["echo more"]
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "book.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def faults_of(path: Path) -> list[str]:
    with pytest.raises(Invalid) as caught:
        read_playbook(path)
    return [f"{one['path']}: {one['message']}" for one in caught.value.errors]


@pytest.mark.parametrize("name", ["demo.yaml", "check_repository.yaml"])
def test_the_shipped_playbooks_are_valid_and_pass_their_audit(name: str) -> None:
    playbook = read_playbook(EXAMPLES / "playbooks" / name)

    require_audited(playbook, DEFAULT_POLICY)
    assert playbook.title
    assert len(playbook.plan.steps) >= 5


@pytest.mark.parametrize(
    ("found", "written", "fault"),
    [
        ("    action: Say hello", "    action: Say hello\n    runs: [x]",
         "steps.0.runs: line 5: unknown key 'runs'"),
        ("title:", "titel: x\ntitle:", "titel: line 1: unknown key 'titel'"),
        ("    depends_on: [a]", "    depends_on: [c]",
         "steps.1.depends_on.0: line 8: step 'b' depends on 'c', which is no step of this plan"),
        ("    action: Say more", "    action: [Say, more]",
         "steps.1.action: line 7: must be text"),
        ('    run: ["echo hello"]', '    run: ["echo hello | wc"]',
         "steps.0.run.0: line 5: '|' needs a shell"),
        ('    run: ["echo hello"]', "    run: {cmd: echo, argv: [echo]}", "steps.0.run: line 5"),
        ("  - id: b", "  - id: a", "steps.1.id: line 6: step 'a' is already defined as steps.0"),
        ("    action: Say hello", "    action: 2026-01-31",
         "steps.0.action: line 4: is a date, which JSON does not have; put it in quotes"),
    ],
)  # fmt: skip
def test_a_fault_in_the_plan_names_its_place_and_line(
    tmp_path: Path, found: str, written: str, fault: str
) -> None:
    assert GOOD.count(found) == 1
    named = faults_of(write(tmp_path, GOOD.replace(found, written)))

    assert any(one.startswith(fault) for one in named), named


def test_a_cycle_is_named_whole(tmp_path: Path) -> None:
    text = GOOD.replace("    action: Say hello", "    action: Say hello\n    depends_on: [b]")

    named = faults_of(write(tmp_path, text))
    assert len(named) == 1
    assert "the steps depend on each other in a cycle: a → b → a" in named[0]
    assert "line 5" in named[0]


def test_every_fault_is_listed_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("    depends_on: [a]", "    depends_on: [c]\n    colour: red").replace(
        "    action: Say hello", "    action: 3"
    )

    assert len(faults_of(write(tmp_path, text))) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"title: x\nsteps: [\n", "line 3: while parsing a flow node, did not find"),
        (b"title: x\n\tsteps: 1\n", "line 2: "),
        (b"title: \xff\xfe\nsteps: []\n", "line 1: the text is not valid UTF-8 (byte 8)"),
        (b"title: a\x07b\n", "line 1: a character that YAML does not allow"),
        (b"title: x\ntitle: y\n", "line 2: the key 'title' is given twice, first in line 1"),
        (b"{title: x, title: y}", "line 1: the key 'title' is given twice"),
        (b"title: *nobody\n", "line 1: found undefined alias"),
        (b"title: &a [*a]\n", "line 1: an alias refers to what it stands in"),
        (b"title: x\n---\ntitle: y\n", "line 2: expected a single document"),
        (b"title: !!python/name:os.system\n", "line 1: could not determine a constructor"),
        (b"title: 2026-13-45\n", "line 1: month must be in 1..12"),
        (b"[" * 60 + b"]" * 60, "line 1: is nested deeper than 50"),
        (b"[" * 1_000_000, "line 1: "),
        (b"? [a]\n: 1\n", "line 1: while constructing a mapping, found unhashable key"),
    ],
)
def test_what_is_no_yaml_of_ours_names_the_line(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(YamlInvalid) as caught:
        read_playbook(write(tmp_path, text))

    assert caught.value.detail.startswith(f"book.yaml, {message}")


def laughs(rows: int) -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, rows)]
    return "\n".join(lines)


def merged_laughs(rows: int) -> str:
    lines = ["a0: &a0 {k: ha}"]
    lines += [f"a{at}: &a{at} {{<<: [{', '.join([f'*a{at - 1}'] * 9)}]}}" for at in range(1, rows)]
    return "\n".join(lines)


@pytest.mark.parametrize("text", [laughs(20), merged_laughs(20)])
def test_aliases_that_multiply_are_refused_before_they_are_built(tmp_path: Path, text: str) -> None:
    with pytest.raises(YamlInvalid, match="its aliases make the document too large"):
        read_playbook(write(tmp_path, text))


def test_an_alias_that_only_shares_is_fine(tmp_path: Path) -> None:
    text = GOOD.replace('run: ["echo hello"]', 'run: &same ["echo hello"]').replace(
        'run: ["echo more"]', "run: *same"
    )

    playbook = read_playbook(write(tmp_path, text))
    assert playbook.plan.steps[1].run == playbook.plan.steps[0].run


def test_more_than_8_megabytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match=f"larger than {MAX_PLAN_BYTES} bytes"):
        read_playbook(write(tmp_path, b"# " + b"x" * MAX_PLAN_BYTES))


def test_too_many_values_are_refused() -> None:
    with pytest.raises(YamlInvalid, match=f"more than {MAX_YAML_VALUES} values"):
        parse_yaml(b"- \n" * (MAX_YAML_VALUES + 1), limit_bytes=MAX_PLAN_BYTES)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text", "42"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PlaybookInvalid, match="must hold a title and steps"):
        read_playbook(write(tmp_path, text))


@pytest.mark.parametrize("title", ["", "title: '  '"])
def test_a_playbook_needs_a_title(tmp_path: Path, title: str) -> None:
    with pytest.raises(PlaybookInvalid, match="has no title"):
        read_playbook(write(tmp_path, GOOD.replace("title: Two steps", title)))


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    with pytest.raises(NotFound, match="There is no file"):
        read_playbook(tmp_path / "absent.yaml")
    with pytest.raises(YamlInvalid, match="is not a file"):
        read_playbook(tmp_path)
    with pytest.raises(YamlInvalid, match="is not a file"):
        read_playbook(tmp_path / "pipe.yaml")


def test_placeholders_are_filled_in_after_the_command_was_split(tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    text = GOOD.replace('["echo hello"]', '["{python} {playbook_dir}/tool.py {other}"]')

    playbook = read_playbook(write(folder, text))
    argv = playbook.plan.steps[0].run[0].argv
    assert argv == (sys.executable, f"{folder.resolve()}/tool.py", "{other}")


def test_a_playbook_that_would_need_a_revision_is_refused_with_the_findings(
    tmp_path: Path,
) -> None:
    text = GOOD.replace(
        "    action: Say more", "    action: Say more\n    irreversible: true"
    ).replace("    action: Say hello", "    action: Say hello\n    role: Wizard")
    playbook = read_playbook(write(tmp_path, text))

    with pytest.raises(PlanInvalid, match="would not pass its audit") as caught:
        require_audited(playbook, DEFAULT_POLICY)
    named = [f"{one['path']}: {one['message']}" for one in caught.value.errors]
    assert named == [
        "steps.1: line 7: Irreversible, but no risk is named: step b. Name the risk and how to "
        "limit it.",
        "steps.0: line 3: Role 'Wizard' is unknown: step a.",
    ]


def test_the_playbook_in_the_guide_is_valid(tmp_path: Path) -> None:
    guide = (settings.BASE_DIR / "docs" / "playbooks.md").read_text(encoding="utf-8")
    text = guide.partition("```yaml\n")[2].partition("```")[0]

    playbook = read_playbook(write(tmp_path, text))
    require_audited(playbook, DEFAULT_POLICY)
    assert [one.id for one in playbook.plan.steps] == ["collect", "links", "publish"]
