"""A box that is ticked while somebody rewrites the list of boxes."""

from __future__ import annotations

from orchestration.models import Artifact, Task, WorkflowRun
from orchestration.rules.box_lists import parse_task_md
from orchestration.services.flow_documents import read_document
from orchestration.services.locked_defects import report_defect
from tests.factories import child, drive, fresh, new_agent, new_project, set_status
from tests.flows.scripts import TASK_LIST, Crew
from tests.flows.test_strict_plan import begin, up_to_boxes
from tests.races.contest import SIR, on_both, race

pytestmark = on_both


def test_a_tick_that_comes_while_the_list_is_rewritten_is_kept() -> None:
    project = new_project("flows")
    crew = Crew(project, new_agent("maker", project=project), new_agent("judge", project=project))
    root = begin(project)
    run = WorkflowRun.objects.get(task=root)
    box = child(up_to_boxes(crew, root), "1.1")
    crew.begin(box)
    crew.give(box, "calc.py", "def add(a, b): ...", "code")
    name = f"{run.directory}/task.md"
    standing = Artifact.objects.get(name=name)
    found = {"severity": "high", "title": "a purpose is missing"}
    report_defect(artifact_id=standing.pk, document=found, actor=SIR)
    fixing = Crew(project, new_agent("fixer", project=project), crew.judge)
    fix = Task.objects.get(fixes__artifact=standing)
    fixing.begin(fix)
    better = TASK_LIST.replace("Purpose: join them", "Purpose: one module")
    fixing.give(fix, name, better)
    crew.say(box)
    fixing.say(fix)
    _, rival = race(
        lambda: set_status(box, crew.maker, "review"),
        lambda: set_status(fix, fixing.maker, "review"),
    )
    rival.result()
    drive(project)
    assert fresh(fix).status == "done"
    text = read_document(run, "task.md")
    assert text is not None
    assert "Purpose: one module" in text
    assert [one.number for one in parse_task_md(text).items if one.is_done] == ["1.1"]
