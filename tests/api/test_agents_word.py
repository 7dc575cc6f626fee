"""What an agent says of its own calls: recorded, marked, and no proof."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Project, ToolCall
from tests.api.callers import Caller
from tests.api.test_assignments_api import DONE, claim, here, lease
from tests.factories import drive

TESTS = "go test ./..."
CLAIM = {"claim": "the tests pass", "confidence": "verified", "evidence": TESTS,
         "verify_command": TESTS}  # fmt: skip
INVENTED = {"tool": "Bash", "command": TESTS, "exit_code": 0, "source": "harness"}


def hand_in_claim(agent: Caller, held: dict[str, Any], project: Project) -> dict[str, Any]:
    """Hand in a claim, let it be judged, and read the output as it is shown then."""
    output = {"title": "work", "content": "made", "type": "document", "assertions": [CLAIM]}
    sent = agent.send(here(held, "result"), lease(held, **DONE | {"output": output}))
    assert sent.status_code == 200, sent.content
    drive(project)
    [shown] = agent.read(f"/api/projects/demo/tasks/{held['task']}?expand=all")["outputs"]
    return dict(shown)


@pytest.mark.usefixtures("task")
def test_word_of_a_harness_is_the_agents_own(agent: Caller, project: Project) -> None:
    held = claim(agent)
    sent = agent.send(here(held, "tool-calls"), lease(held, calls=[INVENTED]))
    assert (sent.status_code, sent.json()["recorded"]) == (201, 1)
    assert ToolCall.objects.get().source == "agent"
    shown = hand_in_claim(agent, held, project)
    assert (shown["proven_trust"], shown["trust_band"]) == (0, "low")
    assert {one["grade"] for one in shown["marks"]} == {"self_reported"}
    assert shown["assertions"][0]["proof"]["grade"] == "self_reported"
