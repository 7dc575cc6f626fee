"""Record that somebody was refused something: a permission refusal is part of the audit trail.

Source: DESIGN section 13.
"""

from __future__ import annotations

from orchestration.services.work import Actor, unit_of_work


def record_refusal(
    *, actor: Actor, method: str, path: str, code: str, why: str, project_id: int | None = None
) -> None:
    """Write one event for a request that was answered with 403."""
    with unit_of_work(actor) as work:
        work.record(
            "permission.refused",
            subject=f"request:{method}"[:80],
            project_id=project_id,
            after={"method": method, "path": path[:500], "code": code},
            why=why,
        )
