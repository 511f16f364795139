"""How often `jetsel calibrate` installs what loses too much, and what it leaves: `python -m calibration.decisions`.

Calibration images are drawn from the answers that ship with ImageNet's family, and from a recording of the starter
family. Prints Markdown, which says how that is done, and writes it to RESULTS-decisions.md beside this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.promises import SHIPPED, without_small_images
from jetsel.artefact.coding import read
from jetsel.artefact.condensed import read_condensed
from jetsel.calibrate.calibrating import FOLDS
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes
from jetsel.features.near_duplicates import assign_folds
from jetsel.premodel.cascades import BUDGETS, FittedCascade, Outputs, fit_cascades, replay_cascade
from jetsel.zoo import STARTER, scan

RESULTS = Path(__file__).parent / "RESULTS-decisions.md"
SIZES = 300, 600, 1247, 2000, 8000
SEED, GOAL = 2026, Goal()
TOO_MUCH = 1.0  # points
WORTH_A_LOOK = 0.02  # of the reference's time: the oracle's saving in draws that count for the share of it
COLUMNS = (
    "images | draws that lose more than 1 point | mean loss, points | largest loss | share of the oracle's saving | "
    "draws with such a saving | reference installed | mean time / reference's"
)


@dataclass(frozen=True, eq=False)
class Population:
    """What a family's models say of all images that there are."""

    name: str
    recording: Recording

    @cached_property
    def outputs(self) -> Outputs:
        """Alone and in pairs, computed once."""
        return self.recording.table(fit_temperatures(self.recording)).outputs


@dataclass(frozen=True)
class Decided:
    """One draw. lost: points of the reference's accuracy. time, oracle: shares of its time."""

    lost: float
    time: float
    oracle: float


def figures(cascades: Sequence[FittedCascade], outputs: Outputs) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whether each cascade is right on each image, and its time: (n, cascades) each."""
    judged = {one: replay_cascade(one, outputs) for one in set(cascades)}
    right = np.stack([judged[one][0] for one in cascades], axis=1)
    return right, np.stack([judged[one][1] @ outputs.costs for one in cascades], axis=1)


def decided(population: Population, images: int, number: int) -> Decided:
    """Draw this many images, decide on them, and look at what that gives in truth."""
    whole, costs = population.outputs, population.outputs.costs
    rows = np.random.default_rng((SEED, images, number)).integers(0, len(whole.classes), images)
    groups = population.recording.groups
    fold_of = assign_folds(rows if groups is None else groups[rows], FOLDS, number)
    right, spent = np.empty((images, len(BUDGETS)), bool), np.empty((images, len(BUDGETS)))
    for fold in range(FOLDS):
        held = np.flatnonzero(fold_of == fold)
        fitted = fit_cascades(whole.take(rows[fold_of != fold]))
        right[held], spent[held] = figures(fitted, whole.take(rows[held]))
    points = [Outcomes(right[:, place], spent[:, place]) for place in range(len(BUDGETS))]
    singles = [Outcomes(whole.after((m,))[1][rows], np.full(images, cost)) for m, cost in enumerate(costs.tolist())]
    reference = GOAL.reference(singles)
    place = GOAL.cheapest_as_accurate(points, singles[reference])
    true_right, true_spent = figures(fit_cascades(whole.take(rows)), whole)
    lost = 100 * (whole.after((reference,))[1].mean() - true_right.mean(axis=0))
    time = true_spent.mean(axis=0) / costs[reference]
    oracle = min(1.0, float(time[lost <= GOAL.may_lose_points].min(initial=1.0)))
    return Decided(0.0, 1.0, oracle) if place is None else Decided(float(lost[place]), float(time[place]), oracle)


def row(images: int, draws: Sequence[Decided]) -> str:
    """Return the cells of one size."""
    lost, time = np.array([one.lost for one in draws]), np.array([one.time for one in draws])
    oracle = np.array([one.oracle for one in draws])
    saves = 1 - oracle >= WORTH_A_LOOK
    share = f"{np.mean((1 - time[saves]) / (1 - oracle[saves])):.2f}" if saves.any() else "-"
    return (
        f"{images:,} | {100 * np.mean(lost > TOO_MUCH):.1f} % | {lost.mean():+.2f} | {lost.max():.2f} | {share} | "
        f"{100 * saves.mean():.0f} % | {100 * np.mean(time == 1):.0f} % | {time.mean():.2f}"
    )


PAGE = f"""# What `jetsel calibrate` decides, simulated

`python -m calibration.decisions --draws DRAWS` wrote this page. The answers to a family's labelled images stand for all
images that its owner might have. For each size, DRAWS sets of calibration images are drawn from them with replacement;
copies of one image stand in one fold. {FOLDS} folds give the figures of the cascades of {len(BUDGETS)} budgets, by
which the goal without limits chooses. The truth is the same budget's cascade, fitted on the whole set, on all images.
The oracle takes the cheapest of these cascades that loses at most {GOAL.may_lose_points:g} points in truth; its saving
counts in the draws in which that is at least {100 * WORTH_A_LOOK:.0f} %.

Goals: at most 5 % of the draws install what loses more than 1 point; the share of the oracle's saving is at least 0.6
at 1,247 images and at least 0.8 from 2,000 on."""


def tables(populations: Sequence[Population], draws: int) -> Iterator[str]:
    """Give the lines of the page: the conditions, and a table of each population."""
    yield PAGE.replace("DRAWS", str(draws))
    for one in populations:
        costs = ", ".join(f"{model} {cost:.2f} ms" for model, cost in one.recording.costs_ms.items())
        yield f"\n## {one.name}\n\n{len(one.recording.classes):,} images. Models: {costs}.\n"
        yield f"| {COLUMNS} |\n|{'---:|' * (COLUMNS.count('|') + 1)}"
        for images in SIZES:
            yield f"| {row(images, [decided(one, images, number) for number in range(draws)])} |"


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100, help="sets of images for each size (%(default)s)")
    parser.add_argument("--imagenet", type=Path, default=SHIPPED, help="calibration with answers (%(default)s)")
    parser.add_argument("--starter", type=Path, metavar="RECORDING", help="recording of the starter family")
    options = parser.parse_args()
    shipped = read(options.imagenet)
    answers = read_condensed(options.imagenet, shipped.costs_ms)
    recording = without_small_images(Recording.of_answers(answers, shipped.decode_px))
    populations = [Population("imagenet", recording)]
    if options.starter is not None:
        family = scan([STARTER]).families["starter"]
        populations.append(Population("starter", load(options.starter, family).recording))
    lines = []
    for line in tables(populations, options.draws):
        lines.append(line)
        print(line, flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
