"""Replay a policy's generator on a recording, to find its answers, the models that it runs, and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.promise import log_odds
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps

LEAST_IN_CATEGORY = 100  # images: a size category with fewer is not tested for its own loss of accuracy

TimeFeatures = Callable[[tuple[str, ...]], float]
"""Names of features -> milliseconds to extract them from one image; repeated calls return the same value."""


@dataclass(frozen=True)
class Replayed:
    """The replay of one image."""

    decision: Decision | None  # None if the policy refused to answer
    ran: tuple[str, ...]  # the models that ran
    models_ms: float  # their recorded time
    choice_ms: float  # the policy's own time in this replay
    score: float | None  # log-odds of the answer's probability
    after_first: tuple[float, float] | None  # a cascade's score after its first model, that model's ms; or None


def replay(
    policy: Policy, recording: Recording, row: int, temperatures: Mapping[str, float], fallback: str | None
) -> Replayed:
    """Run a policy's generator on one recorded image, as if every model were available and time never ran out.

    row: of the image in the recording. temperatures: by model. fallback: the model that answers doubtful
    images; None to refuse them.
    """
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
    """Resume a policy's generator, and return the models that it requests, its decision, or None if it refused.

    predictions: of the models that it requested last, None at the start.
    """
    try:
        return next(steps) if predictions is None else steps.send(predictions)
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision
    except JetselError:
        return None


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n answers: log-odds of their probabilities. Each (n,)."""

    final: NDArray[np.float64]  # NaN if the policy refused
    first: NDArray[np.float64]  # after a cascade's first model, NaN for images that ended there
    first_ms: NDArray[np.float64]  # time of the first model

    @classmethod
    def of(cls, replayed: Sequence[Replayed]) -> Scores:
        """Collect the scores of replayed images."""
        after_first = [image.after_first or (np.nan, 0.0) for image in replayed]
        final = np.array([np.nan if image.score is None else image.score for image in replayed])
        return cls(final, np.array([score for score, _ in after_first]), np.array([ms for _, ms in after_first]))


@dataclass(frozen=True, eq=False)
class PolicyReplay:
    """The replay of one policy on n images."""

    answered: NDArray[np.int64]  # (n,) class numbers, -1 for a refusal
    is_top5: NDArray[np.bool_]  # (n,), whether the true class is among the five most probable
    models_ms: NDArray[np.float64]  # (n,), recorded time of the models that ran
    ran: NDArray[np.bool_]  # (n, models)
    in_doubt: NDArray[np.bool_]  # (n,), whether the policy refused or marked its answer as doubtful
    choice_ms: float  # the policy's own time, the mean over images; the slowest 1 % count as the 99th percentile
    features: tuple[str, ...]  # names of those that the policy reads
    scores: Scores | None = None  # None for the oracle and other bounds


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Accuracy and cost of one policy or operating point on n images. Each (n,)."""

    correct: NDArray[np.bool_]
    time_ms: NDArray[np.float64]
    energy_mj: NDArray[np.float64] | None = None  # None if it was not measured
    groups: NDArray[np.int64] | None = None  # near-duplicates share a number, None: independent
    sizes: NDArray[np.int64] | None = None  # see `size_categories`; None: not distinguished

    @classmethod
    def of(
        cls, recording: Recording, correct: NDArray[np.bool_], ran: NDArray[np.bool_], chooser_ms: float = 0.0
    ) -> Outcomes:
        """Return the outcomes of a policy whose answers are `correct`, (n,), after the models `ran`, (n, m) bool.

        chooser_ms: time of its choice for one image, features included; added to each image's time and energy.
        """
        energy_mj = None
        if recording.energies is not None:
            energy_mj = ran @ recording.costs("energy") + recording.chooser_mj(chooser_ms)
        return cls(correct, ran @ recording.costs("time") + chooser_ms, energy_mj, recording.groups, recording.sizes)

    @classmethod
    def of_model(cls, recording: Recording, column: int) -> Outcomes:
        """Return the outcomes of always running one model. column: its index among the models."""
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
        """Return a mask, (n,), of each size category with at least LEAST_IN_CATEGORY images; none if all are alike."""
        if self.sizes is None:
            return []
        masks = [self.sizes == category for category in np.unique(self.sizes)]
        return [mask for mask in masks if LEAST_IN_CATEGORY <= mask.sum() < len(mask)]

    def cost(self, objective: Objective) -> NDArray[np.float64]:
        """Return each image's ms or mJ, (n,). `calibrate` ensures that energy was measured if it is the objective."""
        if objective == "time":
            return self.time_ms
        assert self.energy_mj is not None
        return self.energy_mj


def replay_all(
    policy: Policy, recording: Recording, rows: Iterable[int], temperatures: Mapping[str, float], fallback: str | None
) -> PolicyReplay:
    """Replay one policy on the images in these rows of a recording, in their order; see `replay`."""
    row_list = list(rows)
    return replay_each([policy] * len(row_list), recording, row_list, temperatures, fallback)


def replay_each(
    policies: Sequence[Policy],
    recording: Recording,
    rows: Sequence[int],
    temperatures: Mapping[str, float],
    fallback: str | None,
) -> PolicyReplay:
    """Replay several fits of one policy, as in cross-validation. policies: the fit for each of the rows."""
    pairs = zip(policies, rows, strict=True)
    replayed = [replay(policy, recording, row, temperatures, fallback) for policy, row in pairs]
    choice_ms = [image.choice_ms for image in replayed]
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
        choice_ms=float(np.minimum(choice_ms, np.quantile(choice_ms, 0.99)).mean()),
        features=tuple(policies[0].features),
        scores=Scores.of(replayed),
    )


def share_choice_times(runs: Mapping[str, PolicyReplay]) -> dict[str, PolicyReplay]:
    """Return the replays with the choice time of `chain` for `chain:1` and so on, and the same for other policies.

    The points of a policy remember estimates together, so only the one that was replayed first shows the whole time.
    """
    firsts = {name: runs.get(name.partition(":")[0], run) for name, run in runs.items()}
    return {name: replace(run, choice_ms=firsts[name].choice_ms) for name, run in runs.items()}
