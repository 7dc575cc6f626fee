"""Walks over a graph of step ids. Iterative and linear, so that 10,000 steps in one chain are fine.

A graph maps each id to the ids it depends on. Ids that are no key of the graph are ignored: the
plan's own check names them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

Graph = Mapping[str, Sequence[str]]


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
    """Find one cycle in each knot of steps that need each other, in the graph's order.

    Shape: each as `[a, b, c]` for a → b → c → a, where an arrow reads "depends on"; a
    self-dependency is `[a]`. Empty exactly when the graph is a DAG.
    """
    place = {key: at for at, key in enumerate(graph)}
    starts = {min(knot, key=place.__getitem__): knot for knot in _knots(graph)}
    return [
        _walk_round(graph, start, starts[start]) for start in sorted(starts, key=place.__getitem__)
    ]


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


def _walk_round(graph: Graph, start: str, knot: set[str]) -> list[str]:
    """Follow dependencies inside a knot until a step comes again."""
    path: dict[str, int] = {}
    step = start
    while step not in path:
        path[step] = len(path)
        step = next(one for one in graph[step] if one in knot)
    return list(path)[path[step] :]


def _knots(graph: Graph) -> Iterator[set[str]]:
    """Find the strongly connected components that hold a cycle (Kosaraju's two walks)."""
    after = successors(graph)
    seen: set[str] = set()
    for start in reversed(_finish_order(graph)):
        if start in seen:
            continue
        knot, queue = {start}, [start]
        while queue:
            fresh = [one for one in after[queue.pop()] if one not in seen and one not in knot]
            knot.update(fresh)
            queue.extend(fresh)
        seen |= knot
        if len(knot) > 1 or start in graph[start]:
            yield knot


def _finish_order(graph: Graph) -> list[str]:
    """Ids in the order in which a walk in depth leaves them."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        path, walks = ([], []) if start in seen else ([start], [iter(graph[start])])
        seen.add(start)
        while walks:
            step = next((one for one in walks[-1] if one in graph and one not in seen), None)
            if step is None:
                walks.pop()
                order.append(path.pop())
            else:
                seen.add(step)
                path.append(step)
                walks.append(iter(graph[step]))
    return order
