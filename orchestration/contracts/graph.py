"""Walks over a graph of step ids. Iterative and linear, so that 10,000 steps in one chain are fine.

A graph maps each id to the ids it depends on. Ids that are no key of the graph are ignored: the
plan's own check names them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

Graph = Mapping[str, Sequence[str]]
MAX_NAMED_CYCLES = 10
MAX_CANDIDATE_CYCLES = 100
"""Each candidate costs a slice of the walk's path, so their number is bounded to stay linear."""


def successors(graph: Graph) -> dict[str, list[str]]:
    """Turn the edges round: who depends on each id. Shape: every id a key, in the graph's order."""
    after: dict[str, list[str]] = {key: [] for key in graph}
    for key, needed in graph.items():
        for dependency in dict.fromkeys(needed):
            if dependency in after:
                after[dependency].append(key)
    return after


def topological_order(graph: Graph) -> list[str]:
    """Ids with every dependency before its dependents, else in the graph's order.

    Shape: the ids on a cycle, and whatever depends on one, are missing.
    """
    after = successors(graph)
    open_count = {
        key: len({one for one in needed if one in graph}) for key, needed in graph.items()
    }
    queue = deque(key for key, count in open_count.items() if count == 0)
    order: list[str] = []
    while queue:
        key = queue.popleft()
        order.append(key)
        for dependent in after[key]:
            open_count[dependent] -= 1
            if open_count[dependent] == 0:
                queue.append(dependent)
    return order


def topological_layers(graph: Graph) -> list[list[str]]:
    """Group ids by the longest way from a start: a layer needs only the layers before it."""
    layer_of: dict[str, int] = {}
    layers: list[list[str]] = []
    for key in topological_order(graph):
        layer = max((layer_of[one] + 1 for one in graph[key] if one in layer_of), default=0)
        layer_of[key] = layer
        if layer == len(layers):
            layers.append([])
        layers[layer].append(key)
    return layers


def find_cycles(graph: Graph) -> list[list[str]]:
    """Find cycles that share no step. Shape: each as `[a, b, c]` for a → b → c → a; at most 10.

    An arrow reads "depends on". A self-dependency is the cycle `[a]`. Empty exactly when the graph
    is a DAG.
    """
    cycles: list[list[str]] = []
    named: set[str] = set()
    for cycle in islice(_candidate_cycles(graph), MAX_CANDIDATE_CYCLES):
        if named.isdisjoint(cycle):
            cycles.append(cycle)
            named.update(cycle)
        if len(cycles) == MAX_NAMED_CYCLES:
            break
    return cycles


def find_cycle(graph: Graph) -> list[str] | None:
    """Find one cycle, as `find_cycles` gives it, or None when the graph is a DAG."""
    return next(iter(find_cycles(graph)), None)


def phases_of(graph: Graph, given: Mapping[str, int | None]) -> dict[str, int]:
    """Give each step its phase: its own, else the highest phase of its dependencies, else 1.

    Shape: ids on a cycle or behind one keep their own phase, else get 1.
    """
    phases: dict[str, int] = {}
    for key in topological_order(graph):
        own = given.get(key)
        inherited = max((phases[one] for one in graph[key] if one in phases), default=1)
        phases[key] = own if own is not None else inherited
    return {key: phases.get(key, given.get(key) or 1) for key in graph}


def _candidate_cycles(graph: Graph) -> Iterator[list[str]]:
    finished: set[str] = set()
    for start in graph:
        if start not in finished:
            yield from _cycles_from(start, graph, finished)


def _cycles_from(start: str, graph: Graph, finished: set[str]) -> Iterator[list[str]]:
    path: list[str] = [start]
    place = {start: 0}
    walks = [iter(graph[start])]
    named: set[str] = set()
    while walks:
        step = next((one for one in walks[-1] if one in graph and one not in finished), None)
        if step is None:
            walks.pop()
            done = path.pop()
            del place[done]
            finished.add(done)
        elif step not in place:
            place[step] = len(path)
            path.append(step)
            walks.append(iter(graph[step]))
        elif step not in named and path[-1] not in named:
            cycle = path[place[step] :]
            named.update(cycle)
            yield cycle
