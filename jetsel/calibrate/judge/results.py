"""Compare policies and bounds with each other, with intervals, and list where policies err or differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.chain import Lift
from jetsel.calibrate.judge.findings import (
    ClassFinding,
    FittedChain,
    Guess,
    ImageFinding,
    ImageSample,
    MacroAverages,
    PolicyDifference,
    Reliability,
    Result,
    Spread,
)
from jetsel.calibrate.judge.kinds import kinds_found
from jetsel.calibrate.judge.metrics import best_mix, macro, mean_interval, share_interval
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, TimeFeatures

RANDOM_SEED = 2018


@dataclass(frozen=True, eq=False)
class Judge:
    """Computes results on one recording.

    features_ms: names of features -> time to extract them. choice_factor: time of a choice on the recording's machine
    divided by the time here.
    """

    recording: Recording
    features_ms: TimeFeatures
    choice_factor: float = 1.0

    def outcomes(self, run: PolicyReplay) -> Outcomes:
        """Return the outcomes of a replay; time and energy include models, choice and features."""
        recording = self.recording
        return Outcomes.of(recording, run.answered == recording.classes, run.ran, self.chooser_ms(run))

    def chooser_ms(self, run: PolicyReplay) -> float:
        """Return the time of choosing for one image, features included."""
        return run.choice_ms * self.choice_factor + (self.features_ms(run.features) if run.features else 0.0)

    def result(self, name: str, run: PolicyReplay) -> Result:
        """Return the metrics of one policy. name: of the policy."""
        outcomes, groups = self.outcomes(run), self.recording.groups
        top1, time_ms, energy_mj = outcomes.correct, outcomes.time_ms, outcomes.energy_mj
        return Result(
            name=name,
            top1=float(top1.mean()),
            top5=float(run.is_top5.mean()),
            top1_interval=share_interval(top1, groups),
            top5_interval=share_interval(run.is_top5, groups),
            macro=MacroAverages(*macro(self.recording.classes, run.answered)),
            time_ms=_spread(time_ms),
            time_interval=mean_interval(time_ms),
            energy_mj=None if energy_mj is None else _spread(energy_mj),
            runs={model: float(run.ran[:, i].mean()) for i, model in enumerate(self.recording.models)},
            in_doubt=float(run.in_doubt.mean()),
            always=self.always(run),
            coin=best_mix(self.recording.costs("time"), self.recording.right.mean(axis=0), float(time_ms.mean())),
            vs_best_single=_difference(outcomes, self.outcomes(self._single)),
            vs_oracle=_difference(outcomes, self.outcomes(self._oracle)),
        )

    def bounds(self) -> dict[str, Result]:
        """Return the results of cheapest, best single, random and oracle, which bound those of any policy."""
        return {
            "cheapest": self.result("cheapest", self.single(self.recording.models[0])),
            "best single": self.result("best single", self._single),
            "random": self.result("random", self.random()),
            "oracle": self.result("oracle", self._oracle),
        }

    def single(self, model: str) -> PolicyReplay:
        """Return the replay of always running one model, without a choice."""
        return self._of_columns(np.full(len(self.recording.classes), self.recording.models.index(model)))

    def random(self) -> PolicyReplay:
        """Return the replay of a model drawn uniformly for each image."""
        draw = np.random.default_rng(RANDOM_SEED)
        return self._of_columns(draw.integers(0, len(self.recording.models), len(self.recording.classes)))

    def always(self, run: PolicyReplay) -> str | None:
        """Return the model that is the only one to run on every image, None if there is none."""
        used = np.flatnonzero(run.ran.any(axis=0))
        return self.recording.models[used[0]] if len(used) == 1 and run.ran[:, used[0]].all() else None

    @cached_property
    def _single(self) -> PolicyReplay:
        return self.single(self.recording.best_single)

    @cached_property
    def _oracle(self) -> PolicyReplay:
        """The cheapest model that is right, or the cheapest of all, chosen at no cost (Taylor et al., section 3.3)."""
        right = self.recording.right
        priced = np.where(right, self.recording.costs(), np.inf)
        return self._of_columns(np.where(right.any(axis=1), priced.argmin(axis=1), 0))

    def _of_columns(self, columns: NDArray[np.int64]) -> PolicyReplay:
        rows, costs = np.arange(len(columns)), self.recording.costs("time")
        answered = self.recording.logits[columns, rows].argmax(axis=1)
        top5, ran = self.recording.among(5)[rows, columns], np.eye(len(costs), dtype=bool)[columns]
        doubt = np.zeros(len(rows), bool)
        return PolicyReplay(answered, top5, costs[columns], ran, doubt, choice_ms=0.0, features=())


def _difference(ours: Outcomes, theirs: Outcomes) -> PolicyDifference:
    ratio = float(ours.time_ms.mean() / theirs.time_ms.mean())
    of_energy = None
    if ours.energy_mj is not None and theirs.energy_mj is not None:
        of_energy = float(ours.energy_mj.mean() / theirs.energy_mj.mean())
    return PolicyDifference(100 * float(ours.correct.mean() - theirs.correct.mean()), ratio, of_energy)


def _spread(values: NDArray[np.float64]) -> Spread:
    p50, p95 = np.quantile(values, [0.5, 0.95])
    return Spread(float(values.mean()), float(p50), float(p95))


def fitted_chain(judge: Judge, run: PolicyReplay, lift: Lift, *, is_offered: bool) -> FittedChain:
    """Return the chain's features, neighbours, gain and cost for the report."""
    chooser_ms = judge.chooser_ms(run)
    return FittedChain(
        lift,
        offered=is_offered,
        chooser_ms=chooser_ms,
        chooser_mj=None if judge.recording.energies is None else judge.recording.chooser_mj(chooser_ms),
        kinds=kinds_found(judge.recording, run) if is_offered else [],
    )


BINS = 15


def reliability(recording: Recording, temperatures: Mapping[str, float]) -> list[Reliability]:
    """Return the calibration error of each model's confidences, before and after temperature scaling."""
    right = recording.right
    before = recording.confidences(dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(temperatures)
    rows = []
    for i, model in enumerate(recording.models):
        errors = [calibration_error(confidences[:, i], right[:, i]) for confidences in (before, after)]
        rows.append(Reliability(model, temperatures[model], *errors))
    return rows


def calibration_error(confidences: NDArray[np.float32], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Return the expected calibration error: the mean gap of confidence and accuracy in equal bins (Guo et al., eq. 3).

    confidences, right: (n,).
    """
    which = np.minimum((confidences * bins).astype(int), bins - 1)
    gaps = np.bincount(which, confidences - right, bins)  # of each bin, times its number of images
    return float(np.abs(gaps).sum() / len(right))


REFUSED = "refused"
MOST_CLASSES = 100  # classes that are listed, the least accurate first
MOST_IMAGES = 48


def classes_of(
    due: NDArray[np.int64], answered: NDArray[np.int64], names: Sequence[str], given: NDArray[np.bool_] | None = None
) -> list[ClassFinding]:
    """Return the findings of each class that has images, the least accurate first.

    due, answered: (n,) true and answered class numbers. given: (n,), which images are answered under a promise; None
    without a promise.
    """
    rows = []
    for number in np.unique(due):
        of_class = due == number
        answers = answered[of_class]
        wrong = Counter(answers[answers != number].tolist()).most_common(3)
        instead = {names[other] if other >= 0 else REFUSED: count for other, count in wrong}
        refused = None if given is None else float(1 - given[of_class].mean())
        rows.append(ClassFinding(names[number], len(answers), float((answers == number).mean()), instead, refused))
    return sorted(rows, key=lambda one: (one.right, -one.images, one.name))[:MOST_CLASSES]


def differing(
    recording: Recording, runs: Mapping[str, PolicyReplay], names: Sequence[str], temperatures: Mapping[str, float]
) -> ImageSample:
    """Return the images to which policies that choose give different answers; up to 48 are described, evenly spread.

    Single models are left out, as they differ on too many images.
    """
    choosing = {name: run for name, run in runs.items() if not name.startswith("single:")}
    answered = np.stack([run.answered for run in choosing.values()])
    rows = np.flatnonzero((answered != answered[0]).any(axis=0))
    spread = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_IMAGES)).astype(np.int64)].tolist()
    some = recording.take(np.array(spread, np.int64))
    first, confidence = some.logits.argmax(axis=2), some.confidences(temperatures)
    images = []
    for place, row in enumerate(spread):
        guesses = {
            model: Guess(names[first[column, place]], float(confidence[place, column]))
            for column, model in enumerate(recording.models)
        }
        given = {name: int(run.answered[row]) for name, run in choosing.items()}
        answers = {name: names[number] if number >= 0 else REFUSED for name, number in given.items()}
        images.append(ImageFinding(recording.path(row), names[recording.classes[row]], guesses, answers))
    return ImageSample(len(rows), images)
