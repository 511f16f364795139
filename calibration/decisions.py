"""How often `jetsel calibrate` installs what loses too much, and what it leaves: `python -m calibration.decisions`.

Calibration images are drawn from the answers that ship with ImageNet's family, and from a recording of the starter
family. Prints Markdown, which says how that is done, and writes it to RESULTS-decisions.md beside this file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import timeit
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.photographs import photographs
from calibration.imagenet.promises import SHIPPED, without_small_images
from calibration.starter.calibrate import LIMITS
from jetsel.artefact.coding import read
from jetsel.artefact.condensed import read_condensed
from jetsel.calibrate.calibrating import FOLDS
from jetsel.calibrate.fit.chain import Reading
from jetsel.calibrate.fit.cross_validation import HeldOut, Points, learn
from jetsel.calibrate.fit.features import TIMED, FeatureClock
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.judge.decision import may_replace
from jetsel.calibrate.record.cuts import WHOLE, decode_cut
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.cascade import NAME as CASCADE
from jetsel.policies.cascade import LearnedCascades
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.chain import SEED as ORDER
from jetsel.policies.chain import LearnedPaths
from jetsel.policies.kind import Table
from jetsel.policies.registry import USUAL
from jetsel.premodel import Neighbours, fit_scaling, worthiest
from jetsel.premodel.cascades import replay_cascade
from jetsel.premodel.paths import PRICES, PathTable, neighbour_means
from jetsel.zoo import STARTER, scan

RESULTS = Path(__file__).parent / "RESULTS-decisions.md"
SIZES = 300, 600, 1247, 2000, 8000
MOST_IMAGES = 200_000  # in all draws of one size: draws of many images take long, and differ less
SEED, GOAL = 2026, Goal()
TOO_MUCH = 1.0  # points
WORTH_A_LOOK = 0.02  # of the reference's time: the oracle's saving in draws that count for the share of it
ROUNDS = 5  # of timing the features
COLUMNS = (
    "images | draws | draws that lose more than 1 point | mean loss, points | largest loss | "
    "share of the oracle's saving | draws with such a saving | chain, cascade, reference installed | "
    "mean time / reference's"
)


@dataclass(frozen=True, eq=False)
class Population:
    """What a family's models say of all images that there are. clock: times the features of one image."""

    name: str
    recording: Recording
    clock: FeatureClock

    @cached_property
    def table(self) -> Table:
        """Every image, its outputs alone and in pairs computed once."""
        return self.recording.table(fit_temperatures(self.recording))

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The number of each image and of its near-duplicates, (n,)."""
        groups = self.recording.groups
        return np.arange(len(self.recording.classes)) if groups is None else groups


@dataclass(frozen=True)
class Drawn:
    """One draw: the policy that it installs. lost: points of the reference's accuracy. time, oracle: of its time."""

    installed: str
    lost: float
    time: float
    oracle: float


Truth = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Accuracy and mean time in ms of each operating point on all images, (points,) each."""


def draw(population: Population, images: int, number: int) -> Drawn:
    """Draw this many images, decide on them as `jetsel calibrate` does, and look at what that gives on all images."""
    rows = np.random.default_rng((SEED, images, number)).integers(0, len(population.groups), images)
    # Rows are drawn independently: as evidence each counts for itself, but copies of one image share their fold.
    recording, table = replace(population.recording.take(rows), groups=None), population.table.take(rows)
    fold_of = assign_folds(population.groups[rows], FOLDS, number)
    held = [np.flatnonzero(fold_of == fold) for fold in range(FOLDS)]
    learned = [learn(table.take(np.flatnonzero(fold_of != fold))) for fold in range(FOLDS)]
    tables = HeldOut(recording, held, [table.take(some) for some in held])
    points: Points = {kind.name: tried for kind in USUAL if (tried := tables.evaluate_points(kind, learned))}
    lift, chain_points = tables.evaluate_readings(learned, population.clock)
    whole = learn(table)
    truth = {CASCADE: truth_of_cascades(population, whole[CASCADE])}
    if lift is not None:
        truth[CHAIN] = truth_of_chain(population, whole[CHAIN], lift.reading, population.groups[rows])
        points |= chain_points if lift.adds else {}
    singles = [Outcomes.of_model(recording, column) for column in range(len(recording.models))]
    reference = GOAL.reference(singles)
    installed, place = decide(points, singles[reference])
    right, cost_ms = population.table.right[:, reference].mean(), population.table.costs[reference]
    lost = {name: 100 * (right - accuracy) for name, (accuracy, _) in truth.items()}
    time = {name: spent / cost_ms for name, (_, spent) in truth.items()}
    cheapest = [time[name][lost[name] <= GOAL.may_lose_points].min(initial=1.0) for name in truth]
    if installed not in truth:
        return Drawn(installed, 0.0, 1.0, float(min(cheapest)))
    return Drawn(installed, float(lost[installed][place]), float(time[installed][place]), float(min(cheapest)))


POPULATIONS: dict[str, Population] = {}
"""What the processes of the simulation share with the one that starts them."""


def draw_from(name: str, images: int, number: int) -> Drawn:
    """Return one draw from a population by its name."""
    return draw(POPULATIONS[name], images, number)


def decide(points: Points, reference: Outcomes) -> tuple[str, int]:
    """Return the policy that is installed and the place of its operating point; "reference" if none may replace it."""
    able = []
    for name, tried in points.items():
        place = GOAL.choose_point(tried, reference)
        if may_replace(tried[place], reference, tried, GOAL):
            able.append((float(tried[place].time_ms.mean()), name, place))
    return min(able)[1:] if able else ("reference", 0)


def truth_of_cascades(population: Population, learned: LearnedCascades) -> Truth:
    """Return what the cascades of all budgets give."""
    outputs = population.table.outputs
    judged = {fitted: replay_cascade(fitted, outputs) for fitted in set(learned.cascades)}
    means = {fitted: (right.mean(), (ran @ outputs.costs).mean()) for fitted, (right, ran) in judged.items()}
    accuracy, spent = zip(*[means[fitted] for fitted in learned.cascades], strict=True)
    return np.array(accuracy), np.array(spent)


def truth_of_chain(population: Population, learned: LearnedPaths, reading: Reading, groups: NDArray[np.int64]) -> Truth:
    """Return what the chain gives at each price, if no image is its own neighbour. groups: of the drawn images."""
    table, outputs, k = population.table, population.table.outputs, reading.k
    groups = groups[np.random.default_rng(ORDER).permutation(len(groups))]  # in the order of the learned rows
    scaling = fit_scaling(learned.columns_of(reading.features))
    copies = int(np.bincount(groups).max())
    cached = Neighbours(scaling.apply(learned.columns_of(reading.features)))
    near, _ = cached.nearest_many(scaling.apply(table.columns_of(reading.features)), min(k + copies, len(groups)))
    is_own = groups[near] == population.groups[:, None]
    near = np.take_along_axis(near, np.argsort(is_own, axis=1, kind="stable")[:, :k], axis=1)
    paths = PathTable.evaluate(learned.table.paths, outputs)
    right, cost = neighbour_means(learned.table.right, learned.table.cost(outputs.costs), near, (k,))[0]
    spent, images = paths.cost(outputs.costs), np.arange(len(near))
    chosen = [worthiest(right, cost, price) for price in PRICES / outputs.costs.max()]
    accuracy = np.array([paths.right[images, one].mean() for one in chosen])
    return accuracy, np.array([spent[images, one].mean() for one in chosen]) + population.clock(reading.features)


def row(images: int, draws: Sequence[Drawn]) -> str:
    """Return the cells of one size."""
    lost, time = np.array([one.lost for one in draws]), np.array([one.time for one in draws])
    oracle = np.array([one.oracle for one in draws])
    saves = 1 - oracle >= WORTH_A_LOOK
    share = f"{np.mean((1 - time[saves]) / (1 - oracle[saves])):.2f}" if saves.any() else "-"
    counts = [sum(one.installed == name for one in draws) for name in (CHAIN, CASCADE, "reference")]
    installed = ", ".join(f"{100 * count / len(draws):.0f} %" for count in counts)
    return (
        f"{images:,} | {len(draws)} | {100 * np.mean(lost > TOO_MUCH):.1f} % | {lost.mean():+.2f} | {lost.max():.2f} | "
        f"{share} | {100 * saves.mean():.0f} % | {installed} | {time.mean():.2f}"
    )


PAGE = f"""# What `jetsel calibrate` decides, simulated

`python -m calibration.decisions --draws DRAWS` wrote this page. The answers to a family's labelled images stand for all
images that its owner might have. For each size, up to DRAWS sets of calibration images are drawn from them with
replacement; copies of one image stand in one fold. {FOLDS} folds give the figures of the cascades of all budgets and of
the chain at all prices, by which the goal without limits chooses. The truth is the same budget's cascade, or the same
reading at the same price, fitted on the whole set, on all images; no image is its own neighbour. Times are those of
models and features, without the choice itself (`python -m benchmarks.chain`). The oracle takes the cheapest point of
both that loses at most {GOAL.may_lose_points:g} points in truth; its saving counts in the draws in which that is at
least {100 * WORTH_A_LOOK:.0f} %.

Goals: at most 5 % of the draws install what loses more than 1 point; the share of the oracle's saving is at least 0.6
at 1,247 images and at least 0.8 from 2,000 on."""


def tables(populations: Sequence[Population], draws: int) -> Iterator[str]:
    """Give the lines of the page: the conditions, and a table of each population."""
    yield PAGE.replace("DRAWS", str(draws))
    for one in populations:
        costs = ", ".join(f"{model} {cost:.2f} ms" for model, cost in one.recording.costs_ms.items())
        yield f"\n## {one.name}\n\n{len(one.recording.classes):,} images. Models: {costs}.\n"
        yield f"| {COLUMNS} |\n|{'---:|' * (COLUMNS.count('|') + 1)}"
        assert one.table.cascades  # which computes all outputs, before the processes below share them
        POPULATIONS[one.name] = one
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
            for images in SIZES:
                numbers = range(min(draws, MOST_IMAGES // images))
                yield f"| {row(images, list(pool.map(partial(draw_from, one.name, images), numbers)))} |"


def timed(files: Sequence[bytes], decode_px: int, features_px: int, whole_ms: float | None) -> FeatureClock:
    """Return a clock of features on these images. whole_ms: of the whole table, None to measure it here."""
    shown = [decode_cut(data, WHOLE, LIMITS, decode_px) for data in files]
    if whole_ms is None:
        each = timeit.repeat(lambda: [one.extract(LIMITS, features_px) for one in shown], number=1, repeat=ROUNDS)
        whole_ms = 1e3 * median(each) / len(shown)
    return FeatureClock(shown, features_px, LIMITS, whole_ms)


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200, help="sets of images for each size, at most (%(default)s)")
    parser.add_argument("--imagenet", type=Path, default=SHIPPED, help="calibration with answers (%(default)s)")
    parser.add_argument("--starter", type=Path, metavar="RECORDING", help="recording of the starter family")
    options = parser.parse_args()
    shipped = read(options.imagenet)
    answers = read_condensed(options.imagenet, shipped.costs_ms)
    recording = without_small_images(Recording.of_answers(answers, shipped.decode_px))
    clock = timed(photographs(None).files, shipped.decode_px, shipped.features_px, None)
    populations = [Population("imagenet", recording, clock)]
    if options.starter is not None:
        family = scan([STARTER]).families["starter"]
        loaded = load(options.starter, family)
        files = [Path(path).read_bytes() for path in loaded.recording.paths[:: len(loaded.recording.paths) // TIMED]]
        clock = timed(files, family.decode_px, loaded.identity.features_px, loaded.times.features_ms)
        populations.append(Population("starter", loaded.recording, clock))
    lines = []
    for line in tables(populations, options.draws):
        lines.append(line)
        print(line, flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
