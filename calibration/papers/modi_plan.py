"""Which models to store on a device (MODI, section 3.2.2): the manager's program against trying everything.

`python -m calibration.papers.modi_plan` writes results/modi-plan.md. Models, their answers and limits are drawn by a
seed. Whatever is stored, a cascade of at most two models answers for each family: so every choice of one for each is
tried.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from benchmarks.conditions import conditions
from calibration.papers.tables import table, written
from jetsel.addons.fleet.documents import Entry
from jetsel.addons.fleet.manager.demands import Demand, options_of
from jetsel.addons.fleet.manager.published import PublishedFamily
from jetsel.addons.fleet.manager.solving import Capacity, CascadeOptions, solve
from jetsel.artefact.condensed import RecordedAnswers

PHOTOGRAPHS, CLASSES, INSTANCES = 500, 20, 20


def main() -> None:
    """Print both values and both times for each number of models."""
    parser = argparse.ArgumentParser(prog="python -m calibration.papers.modi_plan", description=__doc__)
    parser.add_argument("--models", nargs="+", default=["2", "4", "8", "12", "2+2", "3+3", "4+4"], help="by family")
    args = parser.parse_args()
    rows = []
    for models in args.models:
        counts = [int(count) for count in models.split("+")]
        choices, none, apart, program_ms, all_ms = np.array([compared(counts, seed) for seed in range(INSTANCES)]).T
        rows.append(
            f"{models} | {choices.mean():,.0f} | {none.sum():.0f} of {INSTANCES} | {apart.max():.0e} "
            f"| {np.median(program_ms):.1f} | {program_ms.max():.1f} | {np.median(all_ms):.1f}"
        )
    columns = "models | choices | nothing fits | largest difference | program, ms | the slowest | all choices, ms"
    title = f"The plan against trying every choice, {INSTANCES} drawn instances a row"
    written("modi-plan", "\n".join([table(title, columns, rows), *conditions(), ""]))


def compared(counts: list[int], seed: int) -> tuple[float, ...]:
    """Solve one instance both ways: choices, whether nothing fits, difference in accuracy, and the times in ms."""
    families, room = drawn(counts, seed)
    began = time.perf_counter()
    chosen = solve(families, room)
    solved = time.perf_counter()
    best = tried(families, room)
    ended = time.perf_counter()
    if (chosen is None) != (best is None):
        raise AssertionError(f"{counts} models, seed {seed}: one finds what the other does not")
    apart = 0.0 if chosen is None or best is None else abs(chosen.accuracy - best)
    choices = np.prod([len(one.models) for one in families])
    return float(choices), chosen is None, apart, 1e3 * (solved - began), 1e3 * (ended - solved)


def drawn(counts: list[int], seed: int) -> tuple[list[CascadeOptions], Capacity]:
    """Return families of so many models, of which the larger are slower and mostly more right, and limits that bind.

    Three models share a file of weights, and all families one backbone.
    """
    draw = np.random.default_rng([*counts, seed])
    deadline_ms = float(draw.uniform(5, 60))
    families = [_options(count, number, len(counts), draw, deadline_ms) for number, count in enumerate(counts)]
    room = Capacity(float(draw.uniform(5, 50)), float(draw.uniform(20, 80)), float(draw.uniform(0.2, 4)), 1.0)
    return families, room


def _options(count: int, family: int, families: int, draw: np.random.Generator, deadline_ms: float) -> CascadeOptions:
    names = [f"m{number}" for number in range(count)]
    true = draw.integers(0, CLASSES, PHOTOGRAPHS)
    logits = draw.normal(size=(count, PHOTOGRAPHS, CLASSES)).astype(np.float32)
    logits[:, np.arange(PHOTOGRAPHS), true] += np.linspace(1.5, 4.0, count)[:, None] + draw.normal(0, 1.5, PHOTOGRAPHS)
    costs_ms = dict(zip(names, np.geomspace(1, 20, count) * draw.uniform(0.8, 1.2, count), strict=True))
    features = np.zeros((PHOTOGRAPHS, 29), np.float32)
    answers = RecordedAnswers(tuple(names), logits, true, features, np.arange(PHOTOGRAPHS), costs_ms, true)
    sizes = draw.integers(2, 10, count)
    files = {
        name: {"backbone": 3, f"{family}-{number // 3}": int(sizes[number // 3]), f"{family}-{name}": 1}
        for number, name in enumerate(names)
    }
    entry = Entry(family="drawn", version=1, sha256="0" * 64)
    published = PublishedFamily(entry, answers, {}, {}, files, {f"{family}-table": 1})
    demand = Demand(
        family="drawn",
        share=1 / families,
        rate_hz=float(draw.uniform(20, 200)) / families,
        costs_ms=tuple(costs_ms.values()),
        late_ms=tuple(costs_ms.values()),
        energies_mj=tuple(draw.uniform(3, 6) * cost for cost in costs_ms.values()),
        memory_mb=tuple(draw.uniform(5, 40, count)),
        classes=None,
    )
    return options_of(published, demand, deadline_ms)


def tried(families: list[CascadeOptions], room: Capacity) -> float | None:
    """Return the accuracy of the best choice of a cascade for each family; None where none keeps the limits."""
    every = itertools.product(*(range(len(one.models)) for one in families))
    kept = [value for rows in every if (value := worth(families, room, rows)) is not None]
    return max(kept, default=None)


def worth(families: list[CascadeOptions], room: Capacity, rows: tuple[int, ...]) -> float | None:
    """Return the accuracy of one choice, None where it breaks a limit. Time goes first to whom it is worth most."""
    chosen = list(zip(families, rows, strict=True))
    if sum(one.memory_mb[row] for one, row in chosen) > room.memory_mb:
        return None
    files = {sha: size for one, row in chosen for held in (one.always, one.files[row]) for sha, size in held.items()}
    watts = sum(one.rate_hz * one.mj[row] / 1e3 for one, row in chosen)
    if sum(files.values()) > room.storage_bytes or watts > room.watts:
        return None
    left, right = room.busy, 0.0
    asked = [(one.rate_hz * one.ms[row] / 1e3, one.share * one.accuracy[row]) for one, row in chosen]
    for busy, value in sorted(asked, key=lambda each: -each[1] / each[0]):
        served = min(1.0, left / busy)
        left -= served * busy
        right += value * served
    return float(right)


if __name__ == "__main__":
    main()
