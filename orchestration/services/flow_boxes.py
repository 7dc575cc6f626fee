"""Plan the implementation of a change from the boxes of its document: one SubCoding task a box.

Source: DESIGN section 11 ("Workflows"), source document 004 sections 7.1 and 8.2.
"""

from __future__ import annotations

from typing import Any

from orchestration.models import Plan, Task, WorkflowRun
from orchestration.rules.box_lists import Item
from orchestration.rules.flow_stages import STRICT_SPEC, document_path, is_box_plan
from orchestration.rules.profiles import SUBCODING
from orchestration.rules.proposals import PROPOSAL_MD
from orchestration.rules.spec_documents import SPEC_MD, TECH_MD
from orchestration.services.drafting import draft_plan
from orchestration.services.flow_documents import read_boxes, run_of
from orchestration.services.work import Work

BACKEND = "workflow"


def draft_of_boxes(work: Work, task: Task) -> Plan | None:
    """Draft the plan of a stage from the boxes that are open; None for any other task.

    Locks: expects the task locked.
    """
    if not is_box_plan(task.role, task.step_key):
        return None
    run = run_of(task)
    boxes = read_boxes(run) if run is not None else None
    if run is None or boxes is None or not boxes.open_items:
        return None
    numbers = {one.number for one in boxes.open_items}
    steps = [_step(run, one, numbers) for one in boxes.open_items]
    document = {"title": task.title, "summary": f"{run.change_id}: the open boxes", "steps": steps}
    return draft_plan(work, task, document, backend=BACKEND)


def _step(run: WorkflowRun, item: Item, numbers: set[str]) -> dict[str, Any]:
    """Write one box as a step; what is ticked already holds nothing up."""
    return {
        "id": item.number,
        "title": f"{item.number} {item.title}"[:300],
        "action": _words(run, item),
        "depends_on": [one for one in item.depends_on if one in numbers],
        "role": SUBCODING,
    }


def _words(run: WorkflowRun, item: Item) -> str:
    """What SubCoding is told: name, text, where the documents stand, change id and number."""
    names = (SPEC_MD, TECH_MD) if run.name == STRICT_SPEC else (PROPOSAL_MD,)
    lines = [f"Task: {item.title}", f"Change: {run.change_id}", f"Item: {item.number}"]
    labels = {SPEC_MD: "Specification", TECH_MD: "Design", PROPOSAL_MD: "Proposal"}
    lines += [f"{labels[name]}: {document_path(run.directory, name)}" for name in names]
    told = [f"{name.capitalize()}: {value}" for name, value in item.fields.items()
            if name not in ("change", "spec", "design")]  # fmt: skip
    return "\n".join([*lines, "", *told])
