"""Phases, layers, cycles, canonical JSON and definition hashes, also on random graphs."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from orchestration.contracts.plan import Plan, parse_plan
from orchestration.rules.dag import (
    ancestor_sets,
    assign_phases,
    canonical_digest,
    canonical_json,
    definition_hashes,
    find_cycle,
    find_cycles,
    successors,
    topological_layers,
    topological_order,
    transitive_dependents,
)

DIAMOND = {"1": [], "2a": ["1"], "2b": ["1"], "3": ["2a", "2b"], "4": ["3"]}


def plan_of(*steps: dict[str, Any]) -> Plan:
    return parse_plan({"steps": [{"action": "work", **one} for one in steps]})


def random_dag(chosen: random.Random, size: int) -> dict[str, list[str]]:
    names = [f"s{at}" for at in range(size)]
    chosen.shuffle(names)
    dag = {
        name: chosen.sample(names[:at], chosen.randrange(min(at, 4) + 1))
        for at, name in enumerate(names)
    }
    return dict(chosen.sample(list(dag.items()), size))


def walked(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    stack = [start]
    while stack:
        for one in graph[stack.pop()]:
            if one not in found:
                found.add(one)
                stack.append(one)
    return found


def test_the_diamond() -> None:
    assert successors(DIAMOND) == {"1": ["2a", "2b"], "2a": ["3"], "2b": ["3"], "3": ["4"], "4": []}
    assert topological_layers(DIAMOND) == [["1"], ["2a", "2b"], ["3"], ["4"]]
    assert transitive_dependents(DIAMOND, ["2a"]) == {"3", "4"}
    assert transitive_dependents(DIAMOND, ["4", "nobody"]) == set()
    assert find_cycle(DIAMOND) is None


def test_random_dags_keep_their_order() -> None:
    chosen = random.Random(1)
    for size in [1, 2, 3, 10, 40, 40, 40]:
        dag = random_dag(chosen, size)
        order = topological_order(dag)
        assert sorted(order) == sorted(dag)
        place = {key: at for at, key in enumerate(order)}
        assert all(place[one] < place[key] for key, needed in dag.items() for one in needed)
        layers = topological_layers(dag)
        layer_of = {key: at for at, layer in enumerate(layers) for key in layer}
        for key, needed in dag.items():
            assert layer_of[key] == max((layer_of[one] + 1 for one in needed), default=0)


def test_what_a_step_needs_is_what_a_walk_finds() -> None:
    chosen = random.Random(2)
    for _ in range(10):
        dag = random_dag(chosen, 30)
        place, bits = ancestor_sets(dag)
        for before, after in itertools.product(dag, repeat=2):
            needs = before in walked(dag, after)
            assert bool(bits[after] >> place[before] & 1) == needs
            assert (after in transitive_dependents(dag, [before])) == needs


def test_a_cycle_is_found_exactly_when_there_is_one() -> None:
    chosen = random.Random(3)
    for _ in range(200):
        size = chosen.randrange(1, 25)
        names = [str(at) for at in range(size)]
        graph = {name: chosen.choices(names, k=chosen.randrange(3)) for name in names}
        has_cycle = any(name in walked(graph, name) for name in names)
        cycles = find_cycles(graph)
        assert bool(cycles) == has_cycle
        seen: set[str] = set()
        for cycle in cycles:
            assert seen.isdisjoint(cycle)
            assert len(set(cycle)) == len(cycle)
            seen.update(cycle)
            for one, following in itertools.pairwise([*cycle, cycle[0]]):
                assert following in graph[one]
        assert (len(topological_order(graph)) < size) == has_cycle


def test_self_dependency_and_strangers() -> None:
    assert find_cycle({"a": ["a"]}) == ["a"]
    assert find_cycle({"a": ["stranger"]}) is None
    assert topological_order({"a": ["stranger"]}) == ["a"]
    assert find_cycle({}) is None


def test_each_knot_is_named_once() -> None:
    names = [str(at) for at in range(300)]
    graph = dict.fromkeys(names, names) | {"a": ["b", "0"], "b": ["a"], "c": ["a"]}
    assert find_cycles(graph) == [["0"], ["a", "b"]]


def test_thousands_of_cycles_are_all_named() -> None:
    pairs = [(f"x{at}", f"y{at}") for at in range(3_000)]
    graph = {one: [other] for pair in pairs for one, other in (pair, pair[::-1])}
    assert find_cycles(graph) == [list(pair) for pair in pairs]


def test_a_chain_of_fifty_thousand_needs_no_recursion() -> None:
    chain = {str(at): [str(at + 1)] for at in range(50_000)}
    chain["50000"] = []
    assert topological_order(chain)[0] == "50000"
    assert len(topological_layers(chain)) == 50_001
    assert find_cycle(chain) is None
    chain["50000"] = ["0"]
    cycle = find_cycle(chain)
    assert cycle is not None
    assert len(cycle) == 50_001


def test_a_step_without_a_phase_takes_the_highest_of_its_dependencies() -> None:
    plan = plan_of(
        {"id": "late", "depends_on": ["b", "c"]},
        {"id": "a"},
        {"id": "b", "phase": 2},
        {"id": "c", "phase": 4, "depends_on": ["b"]},
        {"id": "later", "depends_on": ["late"]},
        {"id": "own", "phase": 7, "depends_on": ["a"]},
    )
    assert assign_phases(plan) == {"late": 4, "a": 1, "b": 2, "c": 4, "later": 4, "own": 7}


def test_random_phases_never_point_back() -> None:
    chosen = random.Random(4)
    for _ in range(30):
        dag = random_dag(chosen, 25)
        given: dict[str, int] = {}
        for key in topological_order(dag):
            floor = max((given[one] for one in dag[key]), default=1)
            given[key] = floor + chosen.randrange(3)
        own = {key: phase for key, phase in given.items() if chosen.random() < 0.4}
        steps = [
            {"id": key, "depends_on": needed, "phase": own.get(key)} for key, needed in dag.items()
        ]
        expected: dict[str, int] = {}
        for key in topological_order(dag):
            inherited = max((expected[one] for one in dag[key]), default=1)
            expected[key] = own.get(key, inherited)
        phases = assign_phases(plan_of(*steps))
        assert phases == expected
        assert all(phases[one] <= phases[key] for key in dag for one in dag[key])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"b": 1, "a": [2, 3]}, {"a": [2, 3], "b": 1}),
        ({"a": 3}, {"a": 3.0}),
        ({"a": 1e16}, {"a": 10**16}),
        ({"a": 1e300}, {"a": 10**300}),
        ({"a": -0.0}, {"a": 0}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": 1e-7}, {"a": 0.0000001}),
    ],
)
def test_equal_values_have_one_spelling(one: object, other: object) -> None:
    assert canonical_json(one) == canonical_json(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, {"a": "1"}), ([1, 2], [2, 1]), ({"a": None}, {}), (True, 1), ("é", "e\u0301")],
)
def test_different_values_do_not(one: object, other: object) -> None:
    assert canonical_digest(one) != canonical_digest(other)


def test_canonical_json_is_utf8_without_white_space() -> None:
    assert (
        canonical_json({"b": "中", "a": [1, True, None]}) == '{"a":[1,true,null],"b":"中"}'.encode()
    )
    assert json.loads(canonical_json({"x": '\u2028\\"'})) == {"x": '\u2028\\"'}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1, 2}])
def test_what_is_not_json_has_no_spelling(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical_json(value)


BASE: tuple[dict[str, Any], ...] = (
    {"id": "a", "run": ["make"]},
    {"id": "b", "depends_on": ["a"]},
    {"id": "c", "depends_on": ["a"]},
    {"id": "d", "depends_on": ["b", "c"]},
)


def changed(at: int, **fields: Any) -> set[str]:
    """Ids whose hash differs when one step gets other fields."""
    steps = [dict(one) for one in BASE]
    steps[at] |= fields
    before, after = definition_hashes(plan_of(*BASE)), definition_hashes(plan_of(*steps))
    return {key for key in after if before.get(key) != after[key]}


def test_a_change_reaches_exactly_the_step_and_what_needs_it() -> None:
    assert changed(0, action="other") == {"a", "b", "c", "d"}
    assert changed(1, action="other") == {"b", "d"}
    assert changed(3, risks=["new"]) == {"d"}
    assert changed(2, note="unknown fields count too") == {"c", "d"}
    assert changed(0, run=[{"argv": ["make"]}]) == set()
    assert changed(3, depends_on=["c", "b"]) == set()
    assert changed(3, depends_on=["c"]) == {"d"}


def test_a_renamed_dependency_is_a_changed_one() -> None:
    first = definition_hashes(plan_of({"id": "a"}, {"id": "b", "depends_on": ["a"]}))
    other = definition_hashes(plan_of({"id": "z"}, {"id": "b", "depends_on": ["z"]}))
    assert first["b"] != other["b"]


def test_the_order_of_steps_does_not_matter_to_their_hashes() -> None:
    assert definition_hashes(plan_of(*BASE)) == definition_hashes(plan_of(*reversed(BASE)))
