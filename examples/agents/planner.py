#!/usr/bin/env python3
"""A planning agent: turns a task that lists its steps into a plan.

    planner.py --token TOKEN [--url http://127.0.0.1:8000] [--rounds 3]

Each line `1. What to do: `command`` is a step that needs the one before it. A planner with a model
would think here; what it hands in has the same shape. Its token needs the scope `plan`.
"""

import re

from countersign import Countersign, Json, work_for

STEP = re.compile(r"^\s*(\d+)[.)]\s+(.+)$", re.MULTILINE)


def plan(server: Countersign, held: Json) -> Json:
    """Write the plan of a task. Errors: ValueError when the task lists no step."""
    asked = held["input"]
    steps = STEP.findall(asked.get("description") or held["description"])
    if not steps:
        raise ValueError("the task lists no steps")
    return {
        "summary": held["title"],
        "assumptions": ["each step needs what the one before it made"],
        "steps": [
            {
                "id": number,
                "action": action.strip(),
                "depends_on": [steps[place - 1][0]] if place else [],
                "risks": ["its command may fail where the executor runs"],
                "delegate": False,  # small enough to be done as it stands
            }
            for place, (number, action) in enumerate(steps)
        ],
    }


if __name__ == "__main__":
    work_for(["planner"], __doc__.splitlines()[0], plan)
