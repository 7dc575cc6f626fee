"""`/review-security`: a review that only reads; what it finds are graded defects.

Source: DESIGN section 11 ("Workflows").
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Change, Flow, Steps


def build_steps(change: Change) -> Steps:
    """Write the one step of a review."""
    return [
        {
            "id": stages.SECURITY,
            "title": change.said("Review the security", "安全审查"),
            "action": change.action(
                "Review it for security, read only. Hand in JSON: reviewed[], findings[] with "
                "severity (critical, high, medium, low), title, evidence[], advice.",
                "只读地做安全审查。提交 JSON：reviewed[]、findings[]（severity：critical、high、"
                "medium、low，title、evidence[]、advice）。",
            ),
            "role": "QuickExplore",
            "delegate": False,
        }
    ]


FLOW = Flow(name=stages.REVIEW_SECURITY, role="", build=build_steps, documents={})
