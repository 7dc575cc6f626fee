"""Write the documents of a workflow from JSON, so that no agent has to keep to their Markdown.

What is written is checked like any other hand-in; a parser reads the same items back.
Source: FORMATS ("strict-plan documents", "strict-spec documents").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestration.contracts.flow_lists import PlanList, ProposalText, TaskList
from orchestration.contracts.flow_results import read_json_result
from orchestration.rules.box_lists import Item, render_plan_md, render_task_md
from orchestration.rules.flow_stages import PLAN_MD, PROPOSAL_MD, TASK_MD, document_path
from orchestration.rules.marked_text import Box
from orchestration.rules.proposals import Proposal, render_proposal_md
from orchestration.rules.spec_documents import SPEC_MD, TECH_MD

JSON_PART = "#json"
"""How the title of an output ends that holds a document as JSON: `task.md#json`."""
Writer = Callable[[str, str, str], str]


def write_document(name: str, text: str, *, change: str, directory: str) -> str:
    """Write one document of a change from its JSON.

    Errors: Invalid with every fault of the JSON, and for a document that has no such form.
    """
    return WRITERS[name](text, change, directory)


def _task_md(text: str, change: str, directory: str) -> str:
    document = read_json_result(TaskList, text, name=f"{TASK_MD}{JSON_PART}")
    items = [
        _item(one.number, one.title, {
            "target": one.target_object, "purpose": one.purpose, "method": one.method,
            "dependencies": ", ".join(one.depends_on) or "none", "content": one.content,
        })
        for one in document.items
    ]  # fmt: skip
    return render_task_md(items, title=_line(document.title))


def _plan_md(text: str, change: str, directory: str) -> str:
    document = read_json_result(PlanList, text, name=f"{PLAN_MD}{JSON_PART}")
    where = {"change": change, "spec": document_path(directory, SPEC_MD),
             "design": document_path(directory, TECH_MD)}  # fmt: skip
    items = []
    for number, one in enumerate(document.items, start=1):
        fields = {**where, "function": one.function,
                  "requirements": ", ".join(one.requirement_ids)}  # fmt: skip
        if one.demonstration.strip():
            fields["demo"] = one.demonstration
        if one.depends_on:
            fields["dependencies"] = ", ".join(one.depends_on)
        items.append(_item(str(number), one.title, fields))
    return render_plan_md(items)


def _proposal_md(text: str, change: str, directory: str) -> str:
    document = read_json_result(ProposalText, text, name=f"{PROPOSAL_MD}{JSON_PART}")
    changes = tuple(
        (f"**BREAKING** {_line(one.text)}" if one.breaking else _line(one.text), one.breaking)
        for one in document.changes
    )
    impact = {"specs": _line(document.impact.specs), "code": _line(document.impact.code)}
    return render_proposal_md(
        Proposal(_line(document.title), _line(document.reason), changes, impact)
    )


def _item(number: str, title: str, fields: Mapping[str, str]) -> Item:
    """One box; its content alone may be of several lines, each of them inside its field."""
    told = {name: _line(value) for name, value in fields.items() if name != "content"}
    if "content" in fields:
        head, *more = fields["content"].strip().splitlines()
        told["content"] = "\n".join([head, *(f"    {row}" if row.strip() else "" for row in more)])
    return Item(Box(_line(number), _line(title), is_done=False, line=0, mark_at=0), told)


def _line(text: str) -> str:
    return " ".join(text.split())


WRITERS: Mapping[str, Writer] = {
    TASK_MD: _task_md, PLAN_MD: _plan_md, PROPOSAL_MD: _proposal_md,
}  # fmt: skip
