"""The demo works on real files: one real failure, one real fix, a wheel that can be installed."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from orchestration.contracts.plan import Plan
from orchestration.errors import Invalid
from orchestration.runner.patches import apply_patch, is_applied, patched_paths
from orchestration.states import Severity
from tests.runner.playbooks import EXAMPLES, load_playbook, run_step, run_tool, verify_step

WHEEL = "dist/tidytext-0.3.0-py3-none-any.whl"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy the sample package into a workspace, as the demo project does."""
    return Path(
        shutil.copytree(
            EXAMPLES / "sample_package",
            tmp_path / "a workspace",
            ignore=shutil.ignore_patterns("__pycache__", "reports", "dist"),
        )
    )


@pytest.fixture
def plan() -> Plan:
    """Read the demo."""
    return load_playbook("demo.yaml")


def patch_of(plan: Plan) -> str:
    """Take the patch out of the step that is expected to fail."""
    on_failure = plan.by_id["tests"].on_failure
    assert on_failure is not None
    assert on_failure.severity is Severity.MEDIUM
    assert on_failure.fix is not None
    return on_failure.fix.patch


def read_report(package: Path) -> dict[str, object]:
    """Read what the tests' step wrote."""
    document = json.loads((package / "reports/tests.json").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def test_whole_demo_from_failure_over_fix_to_report(package: Path, plan: Plan) -> None:
    for key in ("inventory", "compile"):
        assert run_step(package, plan.by_id[key]).outcome == "ok"
        assert verify_step(package, plan.by_id[key]) == ()
    tests = plan.by_id["tests"]
    assert run_step(package, tests).exit_code == 1
    before = read_report(package)
    assert (before["status"], before["ran"], before["failed"]) == ("failed", 21, 1)
    assert not is_applied(package, patch_of(plan))
    apply_patch(package, patch_of(plan))
    assert is_applied(package, patch_of(plan))
    assert run_step(package, tests).outcome == "ok"
    after = read_report(package)
    assert (after["status"], after["ran"], after["failed"]) == ("passed", 21, 0)
    for key in ("tests", "wheel", "report"):
        assert run_step(package, plan.by_id[key]).outcome == "ok"
        assert verify_step(package, plan.by_id[key]) == ()
    report = (package / "reports/report.md").read_text(encoding="utf-8")
    assert "All tests passed." in report
    assert "Changed since the inventory: `tidytext/excerpts.py`." in report
    with zipfile.ZipFile(package / WHEEL) as wheel:
        assert b"room = limit - len(ELLIPSIS)" in wheel.read("tidytext/excerpts.py")


def test_only_the_planned_test_fails_and_it_names_the_bug(package: Path, plan: Plan) -> None:
    run_step(package, plan.by_id["tests"])
    assert read_report(package)["failing"] == [
        "tests.test_excerpts.ExcerptTest.test_excerpt_is_never_longer_than_its_limit"
    ]


def test_broken_patch_fails_and_the_tests_stay_red(package: Path, plan: Plan) -> None:
    with pytest.raises(Invalid):
        apply_patch(package, patch_of(plan).replace("    room = limit\n", "    room = 7\n"))
    wrong = patch_of(plan).replace("limit - len(ELLIPSIS)", "limit + len(ELLIPSIS)")
    apply_patch(package, wrong)
    assert run_step(package, plan.by_id["tests"]).exit_code == 1


def test_patch_writes_only_what_its_step_declares(plan: Plan) -> None:
    assert set(patched_paths(patch_of(plan))) <= set(plan.by_id["tests"].written_paths)


def test_steps_of_the_first_phase_run_side_by_side(plan: Plan) -> None:
    first = [step for step in plan.steps if step.phase == 1]
    assert len(first) == 3
    assert all(not step.depends_on for step in first)


def test_nothing_but_the_declared_files_is_left_behind(package: Path, plan: Plan) -> None:
    before = {path.relative_to(package).as_posix() for path in package.rglob("*")}
    apply_patch(package, patch_of(plan))
    for step in plan.steps:
        run_step(package, step)
        verify_step(package, step)
    after = {path.relative_to(package).as_posix() for path in package.rglob("*")}
    declared = {path for step in plan.steps for path in step.written_paths}
    assert after - before == (declared - before) | {"reports", "dist"}


def test_same_sources_give_the_same_wheel(package: Path) -> None:
    run_tool(package, "build_wheel.py", "--directory", "dist")
    first = (package / WHEEL).read_bytes()
    run_tool(package, "build_wheel.py", "--directory", "dist")
    assert (package / WHEEL).read_bytes() == first


def test_wheel_that_was_tampered_with_does_not_verify(package: Path, plan: Plan) -> None:
    run_step(package, plan.by_id["wheel"])
    with zipfile.ZipFile(package / WHEEL, "a") as wheel:
        wheel.writestr("tidytext/extra.py", "print('not in the record')\n")
    assert verify_step(package, plan.by_id["wheel"])
