"""A review that waits for somebody outside: the cross-verifier's word, and how it goes on.

Source: DESIGN section 8 ("Layers"), section 14 ("Results by seat").
"""

from __future__ import annotations

from orchestration.contracts.results import CrossVerifierResult
from orchestration.models import Assignment, QAReview, Task
from orchestration.services.defects import take_next_step
from orchestration.services.findings import cross_finding
from orchestration.services.layers import (
    ask_outer_layers,
    cross_check_layer,
    last_change,
    layer_outcomes,
)
from orchestration.services.outputs import newest_outputs
from orchestration.services.review import (
    INSTANT,
    continue_review,
    pass_to_qa,
    record_review,
    start_review,
    unfinished_defects,
)
from orchestration.services.verification import layer_facts, record_layers
from orchestration.services.work import Work
from orchestration.states import ASSIGNMENT_LIVE, DefectStatus, Seat, TaskStatus

CROSS = "cross_verifier"
"""`backend` of a review that a cross-verifier's objections made; it is no verdict of QA."""
REVIEW_SEATS = (Seat.QA.value, Seat.CROSS_VERIFIER.value, Seat.FIXER.value)


def resume_review(work: Work, task: Task, parent: Task | None) -> list[Assignment]:
    """Go on with a review that waited for somebody outside, from what its rows say.

    Locks: expects parent and task locked, the task in review.
    """
    live = [state.value for state in ASSIGNMENT_LIVE]
    if task.assignments.filter(status__in=live, seat__in=REVIEW_SEATS).exists():
        return []
    outputs = newest_outputs(task)
    if not layer_outcomes(task):
        return start_review(work, task, parent, outputs)
    # What is fixed waits for this very review to verify it.
    waiting = [row for row in unfinished_defects(task) if row.status != DefectStatus.FIXED]
    if waiting:
        return take_next_step(work, task, waiting)
    if ask_outer_layers(work, task, outputs):
        return []
    judged = QAReview.objects.filter(
        task=task, attempt=task.attempt, fix_round__gte=last_change(task)
    ).exclude(backend=CROSS)
    if judged.exists():
        return continue_review(work, task, parent, outputs)
    return pass_to_qa(work, task, parent, outputs, INSTANT)


def record_cross_check(
    work: Work,
    task: Task,
    parent: Task | None,
    result: CrossVerifierResult,
    *,
    agent_id: int | None,
    by: str,
) -> list[Assignment]:
    """Take a cross-verifier's word (L4): agreement goes on, each objection is a defect.

    Locks: expects parent and task locked.
    """
    if task.status != TaskStatus.REVIEW:
        return []
    outputs = newest_outputs(task)
    words = [one.words for one in result.findings]
    layer = cross_check_layer(agrees=result.agrees, findings=words, by=by)
    record_layers(work, task, [layer], outputs[-1] if outputs else None)
    work.flush()
    if result.agrees:
        return resume_review(work, task, parent)
    found = [cross_finding(one, raised_by=by) for one in result.findings]
    return record_review(
        work, task, parent, outputs, INSTANT,
        found=found, backend=CROSS, low_defects="accept", agent_id=agent_id,
        layers=layer_facts([layer]),
    )  # fmt: skip
