"""How often `jetsel calibrate` decides wrongly: `python -m calibration.papers.install FIT TEST [--models DIR]`.

FIT and TEST are recordings of one family (`jetsel calibrate --recording`), of other images each. Every policy with
operating points learns from FIT; TEST is the truth. Of TEST, sets of images are drawn again and again as if an owner
calibrated on them: operating points are chosen in five folds, and the rule decides, today's and the one before it.
With --complete N, N whole calibrations on images drawn from TEST are judged on the rest of it. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError
from jetsel.calibrate.calibrating import calibrate
from jetsel.calibrate.fit.assemble import Identity, fit_temperatures, learn, try_out
from jetsel.calibrate.fit.goal import Goal, Outcomes, difference
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record import LoadedRecording, load
from jetsel.calibrate.record.replay import replay_all
from jetsel.features import NAMES, table_hash
from jetsel.policies.kind import ChainPlan
from jetsel.policies.registry import catalogue
from jetsel.zoo import STARTER, Family, scan

SIZES = 200, 500, 1000, 2000
DRAWS = 300
FOLDS = 5
THINNED = 4  # every fourth operating point: neighbours differ little
MARGIN = 0.5  # points
NOTHING = 0.3  # of the time: a policy that saves as much, and is in truth as accurate, was left out for nothing
COLUMNS = (
    "images | in use | rule | worse by more than 0.5 points, % | by more than 1.0, % | slower for nothing, % "
    "| mean points | mean time, share"
)

Points = dict[str, list[Outcomes]]  # policy -> its operating points; a single model has one
Rule = Callable[[Mapping[str, Outcomes], Outcomes | None], str | None]


class Case(NamedTuple):
    """What answers after one draw, in truth.

    points: of accuracy beside what it is judged by. ratio: of its time. slower: a faster policy was as accurate.
    """

    points: float
    ratio: float
    slower: bool


def singles_of(outcomes: Mapping[str, Outcomes]) -> list[str]:
    """The names of the single models, cheapest first."""
    return [name for name in outcomes if name.startswith("single:")]


def today(outcomes: Mapping[str, Outcomes], incumbent: Outcomes | None) -> str | None:
    """The policy that is installed by today's rule, None for none."""
    goal, singles = Goal(), singles_of(outcomes)
    if incumbent is not None:
        return goal.choose(outcomes, incumbent)
    reference = singles[goal.reference([outcomes[name] for name in singles])]
    return goal.choose(outcomes, outcomes[reference]) or reference


def before(outcomes: Mapping[str, Outcomes], incumbent: Outcomes | None) -> str | None:
    """The same by the rule before: the goal's best must beat the best single model, and the winner what answers now."""
    singles = singles_of(outcomes)
    best = max(singles, key=lambda name: outcomes[name].correct.mean())
    name = list(outcomes)[Goal().best(list(outcomes.values()), outcomes[best])]
    winner = name if _was_better(outcomes[name], outcomes[best]) else best
    rival = outcomes[singles[-1]] if incumbent is None else incumbent
    return winner if _was_better(outcomes[winner], rival) else None


def luckiest(outcomes: Mapping[str, Outcomes], _incumbent: Outcomes | None) -> str | None:
    """The single model that looks most accurate: what would be suggested without a correction."""
    return max(singles_of(outcomes), key=lambda name: outcomes[name].correct.mean())


RULES: Mapping[str, Rule] = {"before": before, "today": today, "luckiest single model": luckiest}


def _was_better(candidate: Outcomes, rival: Outcomes) -> bool:
    gain, error = difference(candidate.correct, rival.correct)
    saving, saving_error = difference(rival.time_ms, candidate.time_ms)
    half = 1.96 * max(error, 1 / len(rival.correct))
    is_cheaper = saving > 1.96 * saving_error and candidate.time_ms.mean() <= 0.95 * rival.time_ms.mean()
    return (is_cheaper and gain - half >= -0.005) or (gain > half and saving >= -1.96 * saving_error)


def learned(fit: LoadedRecording, test: LoadedRecording) -> Points:
    """What single models and the operating points that FIT taught give on TEST, with FIT's times."""
    held = replace(test.recording, costs_ms=fit.recording.costs_ms)
    right = held.right
    points = {
        f"single:{model}": [Outcomes(right[:, place], np.full(len(right), held.costs_ms[model]))]
        for place, model in enumerate(held.models)
    }
    taught = learn(fit.recording, ChainPlan(NAMES[:1], 5), fit_temperatures(fit.recording))
    return points | {kind.name: tried[::THINNED] for kind in taught.kinds if (tried := try_out(kind, taught, held))}


def chosen(points: Points, rows: NDArray[np.int64]) -> tuple[dict[str, Outcomes], dict[str, int]]:
    """What each policy gives on these images held out, and the operating point that all of them choose."""
    fold_of, goal = np.arange(len(rows)) % FOLDS, Goal()

    def of(rows: NDArray[np.int64], tried: list[Outcomes]) -> list[Outcomes]:
        return [Outcomes(one.correct[rows], one.time_ms[rows]) for one in tried]

    def place(rows: NDArray[np.int64], tried: list[Outcomes]) -> int:
        singles = [points[name][0] for name in singles_of({name: one[0] for name, one in points.items()})]
        rival = max(of(rows, singles), key=lambda one: float(one.correct.mean()))
        return goal.best(of(rows, tried), rival)

    outcomes, places = {}, {}
    for name, tried in points.items():
        if len(tried) == 1:
            outcomes[name], places[name] = of(rows, tried)[0], 0
            continue
        correct, time_ms = np.zeros(len(rows), bool), np.zeros(len(rows))
        for fold in range(FOLDS):
            held = fold_of == fold
            one = tried[place(rows[~held], tried)]
            correct[held], time_ms[held] = one.correct[rows[held]], one.time_ms[rows[held]]
        outcomes[name], places[name] = Outcomes(correct, time_ms), place(rows, tried)
    return outcomes, places


def judged(points: Points, installed: str, places: Mapping[str, int], beside: Outcomes) -> Case:
    """The truth about what answers after a draw. beside: what it is judged by, on all images."""

    def truth(name: str) -> Outcomes:
        return points[name][places[name]]

    now = truth(installed) if installed else beside
    share, time_ms = now.correct.mean(), now.time_ms.mean()
    slower = any(
        one.correct.mean() >= share and one.time_ms.mean() <= (1 - NOTHING) * time_ms for one in map(truth, points)
    )
    return Case(100 * float(share - beside.correct.mean()), float(time_ms / beside.time_ms.mean()), slower)


def simulated(points: Points, draws: int) -> Iterator[str]:
    """Yield the rows of the table: by images, by what is in use, by rule."""
    draw = np.random.default_rng(2018)
    images = len(next(iter(points.values()))[0].correct)
    singles = singles_of({name: one[0] for name, one in points.items()})
    most, best = points[singles[-1]][0], max((points[name][0] for name in singles), key=lambda one: one.correct.mean())
    for size in (size for size in SIZES if size <= 1.1 * images):
        cases: dict[tuple[str, str], list[Case]] = {}
        for _ in range(draws):
            taken = draw.integers(0, images, size)  # with replacement, so that all of TEST is the truth
            outcomes, places = chosen(points, taken)
            for in_use, incumbent in (("nothing", None), ("the most expensive model", most)):
                seen = None if incumbent is None else Outcomes(incumbent.correct[taken], incumbent.time_ms[taken])
                for name, rule in RULES.items():
                    if name.startswith("luckiest") and incumbent is not None:
                        continue
                    beside = best if incumbent is None else incumbent
                    cases.setdefault((in_use, name), []).append(
                        judged(points, rule(outcomes, seen) or singles[-1], places, beside)
                    )
        yield from (f"{size:,} | {in_use} | {name} | {described(found)}" for (in_use, name), found in cases.items())


def described(cases: list[Case]) -> str:
    """The gist of some draws, as cells."""
    lost, ratio = np.array([one.points for one in cases]), np.array([one.ratio for one in cases])
    shares = [
        100 * np.mean(lost < -MARGIN),
        100 * np.mean(lost < -2 * MARGIN),
        100 * np.mean([c.slower for c in cases]),
    ]
    return " | ".join([*(f"{share:.1f}" for share in shares), f"{lost.mean():+.2f}", f"{ratio.mean():.2f}"])


def complete(family: Family, loaded: LoadedRecording, size: int, runs: int) -> str:
    """Whole calibrations on images drawn at random, with nothing in use, judged on the rest: a row."""
    recording, draw = loaded.recording, np.random.default_rng(7)
    last = f"single:{recording.models[-1]}"
    identity = Identity(
        family.name, family.labels.sha256, loaded.identities, table_hash(), family.decode_px, loaded.features_px
    )

    def clock(names: tuple[str, ...]) -> float:  # an even share of what all take: nothing is extracted here
        return loaded.times.features_ms * len(names) / len(NAMES)

    found: list[Case] = []
    for _ in range(runs):
        order = draw.permutation(len(recording.classes))
        some, rest = replace(loaded, recording=recording.take(order[:size])), recording.take(order[size:])
        made = calibrate(some, identity, InstallRequest(tuple(family.labels.names)), clock, lambda *_: None).calibration
        policy = catalogue(recording.models, made)[made.default_policy]
        run = replay_all(policy, rest, range(len(rest.classes)), made.temperatures, recording.models[-1])
        spent = run.models_ms.mean() + (clock(policy.features) if policy.features else 0.0)
        points = 100 * float((run.answered == rest.classes).mean() - rest.right.mean(axis=0).max())
        found.append(Case(points, float(spent / recording.costs_ms[recording.models[-1]]), policy.name == last))
    return f"{size:,} | nothing | today, {runs} complete runs | {described(found)}"


def main() -> None:
    """Simulate, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path, help="a recording that policies learn from")
    parser.add_argument("test", type=Path, help="a recording of other images, which is the truth")
    parser.add_argument("--models", type=Path, help="the folder of the family's models (default: the starter's)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="sets of images for each size (%(default)s)")
    parser.add_argument("--complete", type=int, default=0, help="whole calibrations (%(default)s)")
    parser.add_argument("--size", type=int, default=500, help="images of a whole calibration (%(default)s)")
    options = parser.parse_args()
    (family,) = scan([options.models or STARTER]).families.values()
    fit, test = load(options.fit, family), load(options.test, family)
    if fit.recording.models != test.recording.models:
        raise CalibrationError(f"{options.test}: other models than {options.fit}: record both with the same")
    images = len(test.recording.classes)
    print(f"\n## {family.name}: policies from {len(fit.recording.classes):,} images, the truth on {images:,} others\n")
    print(f"| {COLUMNS} |\n|{'---|' * 8}")
    for row in simulated(learned(fit, test), options.draws) if options.draws else ():
        print(f"| {row} |", flush=True)
    if options.complete:
        print(f"| {complete(family, test, options.size, options.complete)} |")


if __name__ == "__main__":
    main()
