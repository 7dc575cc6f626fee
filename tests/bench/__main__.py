"""Measure everything the benchmark table names, print it, and write docs/benchmarks.md.

`make bench` runs all of it; `python -m tests.bench W1 S0` only some. Medians of 3.
`python -m tests.bench simulation` plays the simulated projects and writes docs/simulation.md.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["COUNTERSIGN_DATA_DIR"] = tempfile.mkdtemp(prefix="countersign-bench-")

import celery
import django
import psycopg
import redis as redis_library

from tests.bench import bare_celery, claims, pages, paints, sights, simulated, workloads
from tests.bench.bare_celery import bare_workers
from tests.bench.installation import PLAIN, Installation, embedded, quantile, scaled_out
from tests.bench.prompts import prompt_latencies
from tests.services_up import RedisServer

REPEATS = 3
AT_REST_SECONDS = 15
"""What a run took is given back to the system within seconds of its end."""
PAUSE_SECONDS = 0.1
"""Between two verdicts of one person, who is slower than that."""
SIMULATION = {"simulation"}
CLEAN = "100 of 100, every invariant"
Row = tuple[str, str, str]


class Told(list[Row]):
    """Rows that are said on the error stream as they come in."""

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows and say them."""
        for row in rows:
            print(*row, sep=" | ", file=sys.stderr, flush=True)
            self.append(row)


def of_three(measure: Callable[[], float]) -> float:
    """Measure three times; the median."""
    return statistics.median(measure() for _ in range(REPEATS))


def words(values: Sequence[float], unit: str = "ms") -> str:
    """Say p50 and p95."""
    return f"p50 {quantile(values, 0.5):.1f}, p95 {quantile(values, 0.95):.1f} {unit}"


def measure_embedded(folder: Path, wanted: set[str]) -> list[Row]:
    """Everything that runs in the one process."""
    rows: list[Row] = []
    with embedded(folder) as place:
        time.sleep(5)
        idle = place.resident_megabytes()
        if "W1" in wanted:
            small = of_three(lambda: workloads.run_plan(place, 10, 100))
            rows.append(("W1 embedded, 1,000 steps", f"{small:.2f} ms a step", "≤ 3"))
        if "W2" in wanted:
            gaps = [gap for _ in range(REPEATS) for gap in workloads.chain_gaps(place)]
            rows.append(("W2 embedded, chain of 200", words(gaps), "p50 ≤ 3, p95 ≤ 10"))
        if "W3" in wanted:
            took = of_three(lambda: workloads.many_runs(place))
            rows.append(("W3 embedded, 200 runs of 5", f"{took:.2f} s", ""))
        if "W4" in wanted:
            rows += verdict_rows(place, "embedded", "p50 ≤ 10, p95 ≤ 25")
        if "W6" in wanted:
            rows += hint_rows(place)
        if "prompt" in wanted:
            rows.append(prompt_row("embedded", place))
        if "memory" in wanted:
            time.sleep(AT_REST_SECONDS)
            before = place.resident_megabytes()
            large = workloads.run_plan(place, 100, 100)
            rows.append(("W1 embedded, 10,000 steps", f"{large:.2f} ms a step", "≤ 1.2 × 1,000"))
            time.sleep(AT_REST_SECONDS)
            grown = place.resident_megabytes() - before
            rows.append(("memory idle", f"{idle:.0f} MB", "≤ 180"))
            rows.append(("memory more after 10,000 steps", f"{grown:.0f} MB", "≤ 60"))
    return rows


def prompt_row(name: str, place: Installation) -> Row:
    """The bootstrap prompt on one installation."""
    work = f"prompt {name}, 50 predecessors, 1,000 experiences"
    return work, words(prompt_latencies(place)), "p95 < 50"


def verdict_rows(place: Installation, title: str, goal: str) -> list[Row]:
    """W4 on one installation: verdicts one at a time, and without a pause."""
    rows: list[Row] = []
    for pause, how in ((PAUSE_SECONDS, "one at a time"), (0, "without a pause")):
        late = [
            one
            for _ in range(REPEATS)
            for one in workloads.decision_latencies(place, pause_seconds=pause)
        ]
        work = f"W4 {title}, verdict to next step, {how}"
        rows.append((work, words(late), goal if pause else ""))
    return rows


def hint_rows(place: Installation) -> list[Row]:
    """W6 on one installation."""
    first, others, missing = workloads.hint_latencies(place)
    return [
        ("W6 200 sockets, first hint of a burst", words(first), "p95 ≤ 25"),
        ("W6 coalesced hints", words(others), "≤ 300"),
        ("W6 hints missing", str(missing), "0"),
    ]


def claim_rows(place: Installation, title: str) -> list[Row]:
    """Claims over HTTP, on one installation."""
    tokens = claims.new_tokens(place)
    ours, bare = claims.claim_rates(place, tokens)
    told = f"{ours:.0f}/s beside {bare:.0f}/s, {ours / bare:.2f} of it"
    took = claims.finish_and_claim_next(place, tokens)
    seconds, given, errors = claims.claims_in_flight(place, tokens)
    flight = f"{errors} errors, {given} given out in {seconds:.1f} s"
    return [
        (f"claim over HTTP, {title}, beside a bare DRF view", told, "≥ 0.75"),
        (f"finish and claim the next, {title}", words(took), ""),
        (f"200 claims in flight, {title}", flight, "0 errors, 200 given out"),
    ]


def measure_claims(folder: Path) -> list[Row]:
    """Claims on both databases, where steps wait for agents."""
    with embedded(folder, PLAIN) as place:
        rows = claim_rows(place, "SQLite")
    with scaled_out(folder, seats=PLAIN) as place:
        return rows + claim_rows(place, "PostgreSQL")


def measure_scaled_out(folder: Path, wanted: set[str]) -> list[Row]:
    """PostgreSQL and Redis with two workers, beside bare Celery in the same run."""
    rows: list[Row] = []
    with scaled_out(folder) as place:
        if "W1" in wanted:
            ours = of_three(lambda: workloads.run_plan(place, 10, 100))
            rows.append(("W1 PostgreSQL + Redis, 2 workers", f"{ours:.2f} ms a step", ""))
        if "W2" in wanted:
            gaps = [gap for _ in range(REPEATS) for gap in workloads.chain_gaps(place)]
            rows.append(("W2 PostgreSQL + Redis", words(gaps), "p50 ≤ 10, p95 ≤ 30"))
        if "W3" in wanted:
            took = of_three(lambda: workloads.many_runs(place))
            rows.append(("W3 PostgreSQL + Redis, 200 runs of 5", f"{took:.2f} s", ""))
        if "W4" in wanted:
            rows += verdict_rows(place, "PostgreSQL + Redis", "p50 ≤ 20, p95 ≤ 40")
        if "prompt" in wanted:
            rows.append(prompt_row("PostgreSQL", place))
    if {"W1", "W3"} & wanted:
        rows += bare_rows(wanted)
    return rows


def bare_rows(wanted: set[str]) -> list[Row]:
    """The yardstick: the same shapes on Celery and Redis alone."""
    rows: list[Row] = []
    with RedisServer() as server:
        bare_celery.use(server.url)
        with bare_workers(server.url):
            bare_celery.run_chains(5, 2)
            if "W1" in wanted:
                dag = of_three(lambda: bare_celery.run_dag(10, 100))
                rows.append(("W1 bare Celery + Redis, 2 workers", f"{dag:.2f} ms a step", ""))
            if "W3" in wanted:
                chains = of_three(lambda: bare_celery.run_chains(200, 5))
                rows.append(("W3 bare Celery chains", f"{chains:.2f} s", "ours ≤ 2 ×"))
    return rows


def prefilter_rows() -> list[Row]:
    """S0 alone, in this process."""
    big, small = workloads.prefilter_speed()
    return [
        ("S0 one message of 1 MB", f"{big:.0f} ms", "< 150"),
        ("S0 200 characters, p99", f"{small:.0f} µs", "< 50"),
    ]


def growth_rows(folder: Path) -> list[Row]:
    """What grows with the list: the loop's decision and the integrity check; and an archive."""
    rows: list[Row] = []
    for title, environment in simulated.databases(folder):
        for roots in (1_000, 10_000):
            late, restarts, check = simulated.growth(folder, environment, roots)
            work = f"loop's decision after one GO, {roots:,} roots, {title}"
            rows.append((work, words(late), "p95 < 50"))
            work = f"NO-GO with its package and restart, {roots:,} roots, {title}"
            rows.append((work, words(restarts), "p95 < 50"))
            rows.append((f"integrity check, {roots:,} roots, {title}", f"{check:.1f} s", "< 10"))
        for layers in (10, 100):
            took = simulated.archive_time(folder, environment, layers)
            goal = "< 5" if layers == 10 else ""
            work = f"archive of a root with {layers * 100:,} steps, {title}"
            rows.append((work, f"{took:.2f} s", goal))
    return rows


def page_rows(folder: Path) -> list[Row]:
    """Pages over 100,000 roots and more than a million events, on PostgreSQL."""
    with pages.crowded(folder) as (place, told):
        size = (
            f"{told['tasks']:,} tasks, {told['events']:,} events, {told['open']:,} open decisions"
        )
        rows: list[Row] = [("pages: rows in the database", size, "≥ 100,000 and 1,000,000")]
        for name, times in pages.page_times(place, told["ids"]).items():
            goal = "p95 < 150" if name in pages.PROMISED else ""
            rows.append((f"server time: {name}", words(times), goal))
        for name, weight in pages.page_weights(place, told["ids"]).items():
            rows.append((f"weight with empty caches: {name}", f"{weight:.0f} kB", "< 400"))
        for name, times in paints.first_paints(place, folder).items():
            rows.append((f"browser time, first paint: {name}", words(times), "p95 < 2,000"))
        seen, unseen = sights.changes_seen(place, folder)
        pressed = sights.presses(place, folder)
        heard, missing = pages.hints_of(place)
    grown = [name for name, count in told["after"].items() if count > told["before"][name]]
    counts = ", ".join(f"{name} {count}" for name, count in told["after"].items())
    rows.append(("queries, 100 and 100,000 roots", f"{counts}; grown: {grown or 'none'}", "none"))
    work = f"commit to hint on {pages.SOCKETS} sockets, 50 a second"
    rows.append((work, f"{words(heard)}, {missing} missing", "p95 < 300"))
    work = f"change sent to its text in the page, {sights.SOCKETS} sockets, 50 events a second"
    rows.append((work, f"{words(seen)}, {unseen} unseen", "p95 < 300"))
    return [*rows, ("key to the selected row of the inbox in a frame", words(pressed), "p95 < 200")]


def simulation_rows(folder: Path) -> list[Row]:
    """Whole projects of 2,000 roots with faults, each seed on one of the databases."""
    rows: list[Row] = []
    for title, environment in simulated.databases(folder):
        for seed in simulated.SEEDS[title]:
            told = simulated.simulation(folder, environment, seed)
            work = f"{simulated.TASKS:,} roots with faults, seed {seed}, {title}, one worker"
            rows.append((work, told, CLEAN))
        if environment:
            rows.append(killed_row(folder, environment, title))
    return rows


def killed_row(folder: Path, environment: Mapping[str, str], title: str) -> Row:
    """A smaller project whose work is done by worker processes."""
    told = simulated.simulation(
        folder,
        environment,
        simulated.PROCESS_SEED,
        tasks=simulated.PROCESS_TASKS,
        workers=simulated.PROCESSES,
    )
    work = (
        f"{simulated.PROCESS_TASKS} roots with faults, seed {simulated.PROCESS_SEED}, {title}, "
        f"{simulated.PROCESSES} worker processes that are killed"
    )
    return work, told, CLEAN


def report(title: str, rows: Sequence[Row]) -> str:
    """The page, with the machine and the versions it was measured on."""
    versions = (
        f"Python {platform.python_version()}, Django {django.__version__}, "
        f"Celery {celery.__version__}, psycopg {psycopg.__version__}, "
        f"redis {redis_library.__version__}"
    )
    lines = [
        f"# {title}",
        "",
        "Written by `make bench`; medians of 3 runs where it says ms a step or s. Absolute figures",
        "belong to the machine below; compare the rows of one run with each other.",
        "",
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end. {versions}.",
        "",
        "| work | measured | goal |",
        "| --- | --- | --- |",
        *(f"| {work} | {figure} | {goal} |" for work, figure, goal in rows),
        "",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; all of it writes the page."""
    everything = {"S0", "W1", "W2", "W3", "W4", "W6", "prompt", "memory", "claims"}
    everything |= {"growth", "pages"}
    wanted = set(arguments) or everything
    rows = Told()
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        if "S0" in wanted:
            rows.extend(prefilter_rows())
        if wanted & {"W1", "W2", "W3", "W4", "W6", "prompt", "memory"}:
            rows.extend(measure_embedded(Path(folder), wanted))
        if wanted & {"W1", "W2", "W3", "W4", "prompt"}:
            rows.extend(measure_scaled_out(Path(folder), wanted))
        if "growth" in wanted:
            rows.extend(growth_rows(Path(folder)))
        if "pages" in wanted:
            rows.extend(page_rows(Path(folder)))
        if "simulation" in wanted:
            rows.extend(simulation_rows(Path(folder)))
        if "claims" in wanted:
            rows.extend(measure_claims(Path(folder)))
    title = "Simulation" if wanted == SIMULATION else "Benchmarks"
    page = report(title, rows)
    sys.stdout.write(page)
    if wanted in (everything, SIMULATION):
        (ROOT / "docs" / f"{title.lower()}.md").write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
