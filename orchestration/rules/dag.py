"""The plan as a graph: phases, layers, canonical JSON and the definition hash of each step.

Everything is iterative and linear in steps and edges. Source: DESIGN section 7.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from orchestration.contracts.graph import (
    Graph,
    find_cycle,
    find_cycles,
    phases_of,
    successors,
    topological_layers,
    topological_order,
)
from orchestration.contracts.plan import Plan

__all__ = [
    "Graph",
    "ancestor_sets",
    "assign_phases",
    "canonical_digest",
    "canonical_json",
    "definition_hashes",
    "find_cycle",
    "find_cycles",
    "successors",
    "topological_layers",
    "topological_order",
    "transitive_dependents",
]


def assign_phases(plan: Plan) -> dict[str, int]:
    """Give each step its phase: its own, else the highest phase of its dependencies, else 1."""
    return phases_of(plan.graph, {step.id: step.phase for step in plan.steps})


def transitive_dependents(graph: Graph, starts: Iterable[str]) -> set[str]:
    """Ids that need any of `starts`, directly or not. Shape: without the starts themselves, unless
    one of them needs another.
    """
    after = successors(graph)
    queue = [one for one in starts if one in after]
    reached: set[str] = set()
    while queue:
        for dependent in after[queue.pop()]:
            if dependent not in reached:
                reached.add(dependent)
                queue.append(dependent)
    return reached


def ancestor_sets(graph: Graph) -> tuple[dict[str, int], dict[str, int]]:
    """Say what each step needs, directly or not, as bit sets.

    Shape: (place of each id, bits of each id); b needs a when `bits[b] >> place[a] & 1`. Ten
    thousand steps take some 12 MB; asking again and again by walking would be quadratic.
    """
    place: dict[str, int] = {}
    bits: dict[str, int] = {}
    for key in topological_order(graph):
        place[key] = len(place)
        needed = 0
        for one in graph[key]:
            if one in place:
                needed |= bits[one] | (1 << place[one])
        bits[key] = needed
    return place, bits


def canonical_json(value: object) -> bytes:
    """Give the one spelling of a JSON value: keys sorted, no white space, UTF-8.

    A whole number is written without a fraction whatever its type, because databases do not keep
    the difference between 3 and 3.0.
    Errors: ValueError for NaN, infinities and broken Unicode; TypeError for what is not JSON.
    """
    return json.dumps(
        _plain(value), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def canonical_digest(value: object) -> str:
    """Give the sha-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def definition_hashes(plan: Plan) -> dict[str, str]:
    """Hash each step's own fields together with the hashes of its dependencies.

    Shape: step id → sha-256. The order of `depends_on` does not matter; the id does, so that a
    renamed dependency counts as a changed one.
    """
    documents = {str(step["id"]): step for step in plan.to_document()["steps"]}
    hashes: dict[str, str] = {}
    for key in topological_order(plan.graph):
        own = {name: held for name, held in documents[key].items() if name != "depends_on"}
        needs = sorted(hashes[one] for one in plan.graph[key])
        hashes[key] = canonical_digest({"own": own, "needs": needs})
    return {step.id: hashes[step.id] for step in plan.steps}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return value
