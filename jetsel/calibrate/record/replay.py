"""Replay a policy's generator on a recording, to find its answers, the models that it runs, and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.promise import log_odds
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps

LEAST_IN_CATEGORY = 100  # images: a kind with fewer is not tested for its own loss of accuracy

TimeFeatures = Callable[[tuple[str, ...]], float]
"""Names of features -> milliseconds to extract them from one image; repeated calls return the same value."""


@dataclass(frozen=True)
class Replayed:
    """The replay of one image. decision: None if the policy refused.

    ran: the models that ran. models_ms: their recorded time. choice_ms: the policy's own time in this replay. score: of
    the decision, see `log_odds`. first: a cascade's score after its first model, and that model's time; None if the
    cascade ended there.
    """

    decision: Decision | None
    ran: tuple[str, ...]
    models_ms: float
    choice_ms: float
    score: float | None
    after_first: tuple[float, float] | None


def replay(
    policy: Policy,
    recording: Recording,
    row: int,
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> Replayed:
    """Replay the policy on the image in one row of a recording; every model is available and time never runs out."""
    features = recording.features_of(row, policy.features) if policy.features else None
    steps = policy(Evidence(features, fallback))
    ran: list[str] = []
    models_ms = choice_ms = 0.0
    predictions: tuple[Prediction, ...] | None = None
    replies: list[Prediction] = []
    after_first: tuple[float, float] | None = None
    while True:
        began = time.perf_counter()
        step = _resume(steps, predictions)
        choice_ms += (time.perf_counter() - began) * 1e3
        if not isinstance(step, Run):
            score = None if step is None else float(log_odds(step.prediction.confidence))
            return Replayed(step, tuple(ran), models_ms, choice_ms, score, after_first)
        if replies and isinstance(policy, Cascade):
            after_first = float(log_odds(policy.answer(replies).confidence)), models_ms
        ran += step.models
        models_ms += sum(recording.costs_ms[model] for model in step.models)
        predictions = tuple(recording.prediction(model, row, temperatures[model]) for model in step.models)
        replies += predictions


def _resume(steps: Steps, predictions: tuple[Prediction, ...] | None) -> Run | Decision | None:
    """Resume the policy, and return the models that it requests, its decision, or None if it refused."""
    try:
        return next(steps) if predictions is None else steps.send(predictions)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision
    except JetselError:
        return None


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n answers, see `log_odds`. final: (n,), NaN if the policy refused.

    first: (n,), scores after a cascade's first model, NaN for images that ended there. first_ms: (n,), that model's
    time.
    """

    final: NDArray[np.float64]
    first: NDArray[np.float64]
    first_ms: NDArray[np.float64]

    @classmethod
    def of(cls, replayed: Sequence[Replayed]) -> Scores:
        """Return the scores of replayed images."""
        after_first = [image.after_first or (np.nan, 0.0) for image in replayed]
        final = np.array([np.nan if image.score is None else image.score for image in replayed])
        return cls(final, np.array([score for score, _ in after_first]), np.array([ms for _, ms in after_first]))


@dataclass(frozen=True, eq=False)
class PolicyReplay:
    """The replay of one policy on n images.

    answered: (n,) class numbers, -1 for a refusal. is_top5: (n,), whether the true class is among the first five. ran:
    (n, models). choice_ms: median of the policy's own time, which is the same for every image except for noise.
    features: names of the features that the policy needs. scores: None for bounds, which are no policies.
    """

    answered: NDArray[np.int64]
    is_top5: NDArray[np.bool_]
    models_ms: NDArray[np.float64]
    ran: NDArray[np.bool_]
    in_doubt: NDArray[np.bool_]
    choice_ms: float
    features: tuple[str, ...]
    scores: Scores | None = None


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Results of one policy or operating point on n images.

    correct: (n,) bool. time_ms, energy_mj: (n,) float64; energy_mj is None if it was not measured. groups: (n,), images
    with the same number count as one cluster in standard errors; None: all images are independent. sizes: (n,), see
    Recording; None: all images are of one kind.
    """

    correct: NDArray[np.bool_]
    time_ms: NDArray[np.float64]
    energy_mj: NDArray[np.float64] | None = None
    groups: NDArray[np.int64] | None = None
    sizes: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls, recording: Recording, correct: NDArray[np.bool_], ran: NDArray[np.bool_], chooser_ms: float = 0.0
    ) -> Outcomes:
        """Return the outcomes with the time and energy of models and choice. correct: (n,); ran: (n, m)."""
        energy_mj = None
        if recording.energies is not None:
            energy_mj = ran @ recording.costs("energy") + recording.chooser_mj(chooser_ms)
        return cls(correct, ran @ recording.costs("time") + chooser_ms, energy_mj, recording.groups, recording.sizes)

    @classmethod
    def of_model(cls, recording: Recording, column: int) -> Outcomes:
        """Return the outcomes of always running one model. column: its place among the models."""
        ran = np.arange(len(recording.models)) == column
        return cls.of(recording, recording.right[:, column], np.broadcast_to(ran, recording.right.shape))

    def take(self, rows: NDArray[np.bool_]) -> Outcomes:
        """Return the outcomes of some of the images. rows: (n,) bool."""
        return Outcomes(
            self.correct[rows],
            self.time_ms[rows],
            None if self.energy_mj is None else self.energy_mj[rows],
            None if self.groups is None else self.groups[rows],
            None if self.sizes is None else self.sizes[rows],
        )

    def size_masks(self) -> list[NDArray[np.bool_]]:
        """Return one mask, (n,), for each kind of size that has at least LEAST_OF_A_KIND images."""
        if self.sizes is None:
            return []
        masks = [self.sizes == category for category in np.unique(self.sizes)]
        return [mask for mask in masks if LEAST_IN_CATEGORY <= mask.sum() < len(mask)]

    def cost(self, objective: Objective) -> NDArray[np.float64]:
        """Return time or energy of each image, (n,). `calibrate` ensures that energy was measured if it is needed."""
        if objective == "time":
            return self.time_ms
        assert self.energy_mj is not None
        return self.energy_mj


def replay_all(
    policy: Policy,
    recording: Recording,
    rows: Iterable[int],
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> PolicyReplay:
    """Replay the policy on the images in these rows, in their order."""
    row_list = list(rows)
    return replay_each([policy] * len(row_list), recording, row_list, temperatures, fallback)


def replay_each(
    policies: Sequence[Policy],
    recording: Recording,
    rows: Sequence[int],
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> PolicyReplay:
    """Replay one policy as it was fitted for each image. policies: one for each of the rows."""
    pairs = zip(policies, rows, strict=True)
    replayed = [replay(policy, recording, row, temperatures, fallback) for policy, row in pairs]
    answered, is_top5, in_doubt = np.full(len(rows), -1), np.zeros(len(rows), bool), np.ones(len(rows), bool)
    for index, (image, row) in enumerate(zip(replayed, rows, strict=True)):
        if image.decision is not None:
            odds, true = image.decision.prediction.probabilities, int(recording.classes[row])
            answered[index], in_doubt[index] = int(odds.argmax()), image.decision.in_doubt
            ranked_above = np.count_nonzero(odds > odds[true]) + np.count_nonzero(odds[:true] == odds[true])
            is_top5[index] = ranked_above < 5
    return PolicyReplay(
        answered,
        is_top5,
        models_ms=np.array([image.models_ms for image in replayed]),
        ran=np.array([[model in image.ran for model in recording.models] for image in replayed]),
        in_doubt=in_doubt,
        choice_ms=float(np.median([image.choice_ms for image in replayed])),
        features=tuple(policies[0].features),
        scores=Scores.of(replayed),
    )
