"""Which commands a test workflow may run: those of its locked guide, and those Sir approved.

Only his `approve` on a question that shows a command confirms it; an answer in words, whatever it
says, does not, and his newest word on a command holds.
Source: FORMATS ("Test workflow"), DESIGN section 9 ("What was shown is what is signed").
"""

from __future__ import annotations

from orchestration.contracts.commands import split_command
from orchestration.models import Decision, Task, WorkflowDocument
from orchestration.rules.commands import command_digest
from orchestration.rules.flow_stages import TEST_GUIDE_MD, runs_tests
from orchestration.rules.marked_text import DocumentInvalid
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
    rows = Decision.objects.filter(
        task__root_id=task.lineage_root_id, kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value, decided_by_policy="",
    ).order_by("-decided_at", "-pk")  # fmt: skip
    return next((row for row in rows if command in row.content.get(SHOWN, ())), None)


def is_approval(word: Decision | None) -> bool:
    """Whether Sir's word on a command lets it run."""
    return word is not None and word.verdict == "approve"


def is_confirmed(task: Task, command: str) -> bool:
    """Whether the guide names a command and Sir refused it nowhere, or he approved it."""
    word = sirs_word_on(task, command)
    return is_approval(word) or (word is None and command in guide_commands(task))


def confirmed_digests(task: Task, command: str) -> frozenset[str]:
    """Digest the command that a test stage handed in, while it is confirmed; else nothing."""
    if not runs_tests(task.role) or not is_confirmed(task, command):
        return frozenset()
    try:
        return frozenset({command_digest({"argv": split_command(command)})})
    except ValueError:
        return frozenset()
