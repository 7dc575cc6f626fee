"""`/review-security`: a review that only reads; what it finds are graded defects.

Source: DESIGN section 11 ("Workflows").
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Flow, Stage

STAGES = (
    Stage(
        key=stages.SECURITY,
        role="QuickExplore",
        titles=("Review the security", "安全审查"),
        texts=(
            "Review it for security, read only. Hand in JSON: reviewed[], findings[] "
            "with severity (critical, high, medium, low), title, evidence[], advice.",
            "只读地做安全审查。提交 JSON：reviewed[]、findings[]（severity：critical、hig"
            "h、medium、low，title、evidence[]、advice）。",
        ),
    ),
)
"""The stages, in order."""


FLOW = Flow(name=stages.REVIEW_SECURITY, role="", stages=STAGES, documents={})
