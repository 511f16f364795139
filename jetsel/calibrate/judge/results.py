"""Compare policies and bounds with each other, with intervals, and list where policies err or differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.judge.findings import (
    ClassFinding,
    Guess,
    ImageFinding,
    ImageKind,
    ImageSample,
    PolicyDifference,
    Result,
    Spread,
)
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes, PolicyReplay, TimeFeatures


@dataclass(frozen=True, eq=False)
class Judge:
    """Computes accuracy, time and energy of replays on one recording."""

    recording: Recording
    features_ms: TimeFeatures  # names of features -> ms to extract them
    choice_factor: float = 1.0  # time of a choice on the recording's machine / time here

    def outcomes(self, run: PolicyReplay) -> Outcomes:
        """Return each image's result; its time and energy include models, choice and features."""
        recording = self.recording
        return Outcomes.of(recording, run.answered == recording.classes, run.ran, self.chooser_ms(run))

    def chooser_ms(self, run: PolicyReplay) -> float:
        """Return the milliseconds of choosing the models for one image, extraction of features included."""
        return run.choice_ms * self.choice_factor + (self.features_ms(run.features) if run.features else 0.0)

    def result(self, name: str, run: PolicyReplay) -> Result:
        """Return the metrics that the report shows of one policy."""
        outcomes, single = self.outcomes(run), self.outcomes(self._best_single_replay)
        top1, time_ms, energy_mj = outcomes.correct, outcomes.time_ms, outcomes.energy_mj
        return Result(
            name=name,
            top1=float(top1.mean()),
            top5=float(run.is_top5.mean()),
            top1_interval=share_interval(top1, self.recording.groups),
            time_ms=_spread(time_ms),
            energy_mj=None if energy_mj is None else _spread(energy_mj),
            runs={model: float(run.ran[:, i].mean()) for i, model in enumerate(self.recording.models)},
            always=self.only_model(run),
            vs_best_single=PolicyDifference(
                100 * float(top1.mean() - single.correct.mean()), float(time_ms.mean() / single.time_ms.mean())
            ),
        )

    def bounds(self) -> dict[str, Result]:
        """Return the results of the best single model and of the oracle: what a policy should and can reach at most."""
        return {
            "best single": self.result("best single", self._best_single_replay),
            "oracle": self.result("oracle", self._oracle_replay),
        }

    def only_model(self, run: PolicyReplay) -> str | None:
        """Return the model if the policy runs it, and no other, on every image; otherwise None."""
        used = np.flatnonzero(run.ran.any(axis=0))
        return self.recording.models[used[0]] if len(used) == 1 and run.ran[:, used[0]].all() else None

    @cached_property
    def _best_single_replay(self) -> PolicyReplay:
        column = self.recording.models.index(self.recording.best_single)
        return self._replay_columns(np.full(len(self.recording.classes), column))

    @cached_property
    def _oracle_replay(self) -> PolicyReplay:
        """The cheapest model that is right, or the cheapest of all, chosen at no cost (Taylor et al., section 3.3)."""
        right = self.recording.right
        priced = np.where(right, self.recording.costs(), np.inf)
        return self._replay_columns(np.where(right.any(axis=1), priced.argmin(axis=1), 0))

    def _replay_columns(self, columns: NDArray[np.int64]) -> PolicyReplay:
        """Return the replay of running one model on each image, at no cost for the choice. columns: (n,), its index."""
        rows, costs = np.arange(len(columns)), self.recording.costs("time")
        answered = self.recording.logits[columns, rows].argmax(axis=1)
        top5, ran = self.recording.is_among_best(5)[rows, columns], np.eye(len(costs), dtype=bool)[columns]
        doubt = np.zeros(len(rows), bool)
        return PolicyReplay(answered, top5, costs[columns], ran, doubt, choice_ms=0.0, features=())


def _spread(values: NDArray[np.float64]) -> Spread:
    p50, p95 = np.quantile(values, [0.5, 0.95])
    return Spread(float(values.mean()), float(p50), float(p95))


LEAST_SHARE = 0.03  # smallest share of the images that is described as a kind of image
LEAST_ROC_AREA = 0.8  # smallest area under the ROC curve of a feature that describes a kind

LOOKS = {
    "colourfulness": ("grey", "colourful"),
    "avg_perceived_brightness": ("dark", "bright"),
    "area": ("small", "large"),
    "noise": ("free of noise", "noisy"),
    "detail": ("blurred", "sharp"),
    "contrast": ("low in contrast", "high in contrast"),
    "n_keypoints": ("plain", "busy"),
}
"""Feature -> look of images with a low and with a high value; the first feature wins a tie."""


def describe_image_kinds(recording: Recording, run: PolicyReplay) -> list[ImageKind]:
    """Return which images the policy starts with which model, if one feature describes them; the most images first.

    A kind is all images that start with the same model. The feature that separates it best from the other images, by
    the area under the ROC curve, describes it (Hanley and McNeil 1982).
    """
    first_model = run.ran.argmax(axis=1)
    values_by_name = {name: recording.feature(name) for name in LOOKS if name in recording.feature_names}
    kinds = []
    for column in np.unique(first_model):
        of_kind = first_model == column
        share = float(of_kind.mean())
        if not values_by_name or not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            continue
        areas = {name: _roc_area(values, of_kind) for name, values in values_by_name.items()}
        feature = max(areas, key=lambda name: round(abs(areas[name] - 0.5), 2))
        if abs(areas[feature] - 0.5) >= LEAST_ROC_AREA - 0.5:
            look = LOOKS[feature][int(areas[feature] > 0.5)]
            kinds.append(ImageKind(recording.models[column], share, look))
    return sorted(kinds, key=lambda kind: -kind.share)


def _roc_area(values: NDArray[np.float32], of_kind: NDArray[np.bool_]) -> float:
    """Return how likely a value of the kind is larger than one of the others, ties counting half.

    That is the area under the ROC curve. values, of_kind: (n,).
    """
    _, rank, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2  # ranks from 1; equal values share their mean rank
    n_of_kind = int(of_kind.sum())
    pairs_above = float(mean_ranks[rank][of_kind].sum()) - n_of_kind * (n_of_kind + 1) / 2
    return pairs_above / (n_of_kind * (len(values) - n_of_kind))


REFUSED = "refused"
MOST_CLASSES = 100  # classes that are listed, the least accurate first
MOST_IMAGES = 48


def class_findings(
    true: NDArray[np.int64],
    answered: NDArray[np.int64],
    names: Sequence[str],
    is_given: NDArray[np.bool_] | None = None,
) -> list[ClassFinding]:
    """Return the findings of each class that has images, the least accurate first.

    true, answered: (n,) class numbers, -1 for a refusal. names: of the classes. is_given: (n,), which images are
    answered if the policy must keep a promised error rate; None without a promise.
    """
    rows = []
    for number in np.unique(true):
        of_class = true == number
        answers = answered[of_class]
        wrong = Counter(answers[answers != number].tolist()).most_common(3)
        instead = {names[other] if other >= 0 else REFUSED: count for other, count in wrong}
        refused = None if is_given is None else float(1 - is_given[of_class].mean())
        rows.append(ClassFinding(names[number], len(answers), float((answers == number).mean()), instead, refused))
    return sorted(rows, key=lambda finding: (finding.right, -finding.images, finding.name))[:MOST_CLASSES]


def find_differing(
    recording: Recording, runs: Mapping[str, PolicyReplay], names: Sequence[str], temperatures: Mapping[str, float]
) -> ImageSample:
    """Return the images to which policies give different answers; up to MOST_IMAGES are described, evenly spread.

    Single models are left out, as they differ on too many images. names: of the classes. temperatures: by model.
    """
    choosing = {name: run for name, run in runs.items() if not name.startswith("single:")}
    answered = np.stack([run.answered for run in choosing.values()])
    rows = np.flatnonzero((answered != answered[0]).any(axis=0))
    shown_rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_IMAGES)).astype(np.int64)].tolist()
    shown = recording.take(np.array(shown_rows, np.int64))
    top_classes, confidence = shown.logits.argmax(axis=2), shown.confidences(temperatures)
    images = []
    for index, row in enumerate(shown_rows):
        guesses = {
            model: Guess(names[top_classes[column, index]], float(confidence[index, column]))
            for column, model in enumerate(recording.models)
        }
        class_numbers = {name: int(run.answered[row]) for name, run in choosing.items()}
        answers = {name: names[number] if number >= 0 else REFUSED for name, number in class_numbers.items()}
        images.append(ImageFinding(recording.path(row), names[recording.classes[row]], guesses, answers))
    return ImageSample(len(rows), images)
