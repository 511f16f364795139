"""What each policy and each bound comes to, with intervals, and where the policies are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.cross_validation import best_single
from jetsel.calibrate.fit.goal import Outcomes
from jetsel.calibrate.judge.findings import (
    ClassFinding,
    Guess,
    ImageFinding,
    ImageSample,
    PolicyDifference,
    Result,
    Spread,
)
from jetsel.calibrate.judge.metrics import best_mix, macro, mean_interval, share_interval
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay, TimeFeatures

RANDOM_SEED = 2018


@dataclass(frozen=True, eq=False)
class Judge:
    """What every result is judged against: one recording.

    features_ms: of extracting the features of these names. choice_factor: how much slower than here a choice is on the
    machine that the times are of. energy_reason: why energies are unknown, if they are.
    """

    recording: Recording
    features_ms: TimeFeatures
    choice_factor: float = 1.0
    energy_reason: str | None = None

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which model is right on which photograph, (n, m)."""
        return self.recording.right

    def outcomes(self, run: PolicyReplay) -> Outcomes:
        """Right or wrong, and the whole time and energy: models, choice and features."""
        recording = self.recording
        return Outcomes(self._correct(run), self.time_ms(run), self.energy_mj(run), recording.groups, recording.sizes)

    def time_ms(self, run: PolicyReplay) -> NDArray[np.float64]:
        """The whole time of each photograph, (n,)."""
        return run.models_ms + self.chooser_ms(run)

    def energy_mj(self, run: PolicyReplay) -> NDArray[np.float64] | None:
        """The whole energy of each photograph above idle power, (n,); None if it was not measured."""
        if not self.recording.knows_energy:
            return None
        models_mj: NDArray[np.float64] = run.ran @ self.recording.costs("energy")
        return models_mj + self.chooser_mj(run)

    def chooser_ms(self, run: PolicyReplay) -> float:
        """The time of choosing for one photograph, features included."""
        return run.choice_ms * self.choice_factor + (self.features_ms(run.features) if run.features else 0.0)

    def chooser_mj(self, run: PolicyReplay) -> float:
        """The energy of the same. Raises CalibrationError if it was not measured."""
        return self.recording.chooser_mj(self.chooser_ms(run))

    def result(self, name: str, run: PolicyReplay) -> Result:
        """Describe one policy."""
        top1 = self._correct(run)
        groups, time_ms = self.recording.groups, self.time_ms(run)
        precision, recall, f1 = macro(self.recording.classes, run.answered)
        energy_mj = self.energy_mj(run)
        return Result(
            name=name,
            top1=float(top1.mean()),
            top5=float(run.is_top5.mean()),
            top1_interval=share_interval(top1, groups),
            top5_interval=share_interval(run.is_top5, groups),
            precision=precision,
            recall=recall,
            f1=f1,
            time_ms=_spread(time_ms),
            time_interval=mean_interval(time_ms),
            energy_mj=None if energy_mj is None else _spread(energy_mj),
            energy_reason=self.energy_reason if energy_mj is None else None,
            runs={model: float(run.ran[:, i].mean()) for i, model in enumerate(self.recording.models)},
            in_doubt=float(run.in_doubt.mean()),
            always=self.always(run),
            coin=best_mix(self.recording.costs("time"), self.right.mean(axis=0), float(time_ms.mean())),
            vs_best_single=self._against(run, self._single),
            vs_oracle=self._against(run, self._oracle),
        )

    def bounds(self) -> dict[str, Result]:
        """Cheapest, best single, random and oracle: what any policy lies between."""
        return {
            "cheapest": self.result("cheapest", self.single(self.recording.models[0])),
            "best single": self.result("best single", self._single),
            "random": self.result("random", self.random()),
            "oracle": self.result("oracle", self._oracle),
        }

    def single(self, model: str) -> PolicyReplay:
        """One model, always, without a chooser."""
        return self._of_columns(np.full(len(self.recording.classes), self.recording.models.index(model)))

    def random(self) -> PolicyReplay:
        """A model drawn evenly for each photograph."""
        draw = np.random.default_rng(RANDOM_SEED)
        return self._of_columns(draw.integers(0, len(self.recording.models), len(self.recording.classes)))

    def always(self, run: PolicyReplay) -> str | None:
        """The one model that a run asks on every photograph, and no other; None if there is none such."""
        used = np.flatnonzero(run.ran.any(axis=0))
        return self.recording.models[used[0]] if len(used) == 1 and run.ran[:, used[0]].all() else None

    @cached_property
    def best_single(self) -> str:
        """The most accurate model on these photographs, of equals the cheapest."""
        return best_single(self.recording)

    @cached_property
    def _single(self) -> PolicyReplay:
        return self.single(self.best_single)

    @cached_property
    def _oracle(self) -> PolicyReplay:
        """The cheapest model that is right (section 3.3), the cheapest of all if none is, chosen at no cost."""
        priced = np.where(self.right, self.recording.costs(), np.inf)
        return self._of_columns(np.where(self.right.any(axis=1), priced.argmin(axis=1), 0))

    def _of_columns(self, columns: NDArray[np.int64]) -> PolicyReplay:
        logits = self.recording.logits[columns, np.arange(len(columns))]
        top5 = self.recording.among(5)[np.arange(len(columns)), columns]
        costs = self.recording.costs("time")
        ran = np.zeros((len(columns), len(costs)), bool)
        ran[np.arange(len(columns)), columns] = True
        doubt = np.zeros(len(columns), bool)
        return PolicyReplay(logits.argmax(axis=1), top5, costs[columns], ran, doubt, choice_ms=0.0, features=())

    def _correct(self, run: PolicyReplay) -> NDArray[np.bool_]:
        correct: NDArray[np.bool_] = run.answered == self.recording.classes
        return correct

    def _against(self, run: PolicyReplay, rival: PolicyReplay) -> PolicyDifference:
        points = 100 * float(self._correct(run).mean() - self._correct(rival).mean())
        ratio = float(self.time_ms(run).mean() / self.time_ms(rival).mean())
        ours, theirs = self.energy_mj(run), self.energy_mj(rival)
        of_energy = None if ours is None or theirs is None else float(ours.mean() / theirs.mean())
        return PolicyDifference(points, ratio, of_energy)


def _spread(values: NDArray[np.float64]) -> Spread:
    p50, p95 = np.quantile(values, [0.5, 0.95])
    return Spread(float(values.mean()), float(p50), float(p95))


REFUSED = "refused"
MOST_CLASSES = 100  # that are listed, those with the smallest shares first
MOST_IMAGES = 48


def classes_of(
    due: NDArray[np.int64], answered: NDArray[np.int64], names: Sequence[str], given: NDArray[np.bool_] | None = None
) -> list[ClassFinding]:
    """Return what a policy answers to each class that has images, the worst first.

    due, answered: (n,) class numbers. given: (n,), which answers a promise lets pass; None without one.
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
    """Return the images on which policies that choose give different answers; single models differ on too many.

    Up to 48 are described, evenly spread over the recording.
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
        path = recording.paths[row] if recording.paths else f"image {row}"
        images.append(ImageFinding(path, names[recording.classes[row]], guesses, answers))
    return ImageSample(len(rows), images)
