"""Which commands a test workflow may run: those of its locked guide, and those Sir approved.

Only his `approve` on a question that shows a command confirms it; an answer in words, whatever it
says, does not, and his newest word on a command holds.
Source: FORMATS ("Test workflow"), DESIGN section 9 ("What was shown is what is signed").
"""

from __future__ import annotations

from django.db.models import QuerySet

from orchestration.contracts.commands import split_command
from orchestration.models import Decision, Task, WorkflowDocument
from orchestration.rules.commands import command_digest
from orchestration.rules.flow_stages import TEST_GUIDE_MD, is_run_by_us
from orchestration.rules.marked_text import DocumentInvalid
from orchestration.rules.redlines import red_lines_in
from orchestration.rules.test_guides import parse_test_guide
from orchestration.states import DecisionKind, DecisionStatus

SHOWN = "shown_commands"
"""Where the content of a question holds the commands that it shows."""


def guide_commands(task: Task) -> tuple[str, ...]:
    """List the commands of the guide that is locked for a task's workflow."""
    rows = WorkflowDocument.objects.filter(
        run__task_id=task.lineage_root_id, path__endswith=f"/{TEST_GUIDE_MD}"
    )
    data = rows.values_list("artifact__content__data", flat=True).first()
    if data is None:
        return ()
    try:
        return parse_test_guide(bytes(data).decode("utf-8", "replace")).commands
    except DocumentInvalid:
        # Sir may accept a guide as it is; one that cannot be read names no command.
        return ()


def sirs_word_on(task: Task, command: str) -> Decision | None:
    """Find Sir's newest word on a question, anywhere in the task's tree, that shows a command."""
    return next((row for row in _words(task) if command in row.content.get(SHOWN, ())), None)


def _words(task: Task) -> QuerySet[Decision]:
    """What Sir himself answered in a task's tree, the newest first."""
    rows = Decision.objects.filter(
        task__root_id=task.lineage_root_id, kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value, decided_by_policy="",
    )  # fmt: skip
    return rows.order_by("-decided_at", "-pk")


def confirmed_commands(task: Task) -> frozenset[str]:
    """List the commands that the test stages of a task's tree may run.

    Those of the guide run unasked, but for one that crosses a red line or that Sir spoke of.
    """
    words: dict[str, Decision] = {}
    for row in _words(task):
        for command in row.content.get(SHOWN, ()):
            words.setdefault(command, row)
    unasked = {
        one
        for one in guide_commands(task)
        if one not in words and not red_lines_in([one], task.project.policy)
    }
    return frozenset(unasked | {one for one, row in words.items() if row.verdict == "approve"})


def confirmed_digests(task: Task) -> frozenset[str]:
    """Digest what a test stage may run, as it stands now; nothing for any other step."""
    if not is_run_by_us(task.role, task.step_key):
        return frozenset()
    found = set()
    for command in confirmed_commands(task):
        try:
            found.add(command_digest({"argv": split_command(command)}))
        except ValueError:
            # Only a shell could run it, so nothing here ever will.
            continue
    return frozenset(found)
