"""A replay answers, runs and costs what the driver would, refusals included."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.base.errors import InDoubtError
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay, replay, replay_all, share_choice_times
from jetsel.engines import Output
from jetsel.policies import Decision, Policy
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Evidence, Steps
from jetsel.policies.single import Single
from jetsel.premodel import Chain, Neighbours, Scaling
from jetsel.runtime import Driver, ModelQueue, RequestRun
from tests.unit.calibrate.recorded import COSTS_MS, drawn
from tests.unit.runtime.driving import Asked, TableEngine, finish

TEMPERATURES = {"s": 0.8, "m": 1.5, "l": 2.0}
EVEN = dict.fromkeys(TEMPERATURES, 1.0)


class RecordedEngine(TableEngine):
    """Answers what the model said of the photograph whose number is its input."""

    def __init__(self, name: str, logits: NDArray[np.float32]) -> None:
        super().__init__(name, 0.0)
        self._logits = logits

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        (batch,) = parts
        return Output(self._logits[batch[:, 0, 0, 0].astype(int)], None, None)


def driven(policy: Policy, recording: Recording, photograph: int, fallback: str | None) -> RequestRun:
    """The photograph under the policy, by the driver."""
    queues = {
        model: ModelQueue(model, RecordedEngine(model, logits), TEMPERATURES[model])
        for model, logits in zip(recording.models, recording.logits, strict=True)
    }
    features = recording.features_of(photograph, policy.features) if policy.features else None
    number = np.full((1, 1, 1, 1), photograph, np.float32)
    run = RequestRun(features, fallback, policy=policy, request=Asked(pixels=number))
    finish(Driver(queues), run)
    return run


def chain(recording: Recording) -> ChainPolicy:
    paths = tuple(Cascade("chain", rungs_of([model], [])) for model in recording.models)
    cost = np.broadcast_to(np.array(list(COSTS_MS.values()), np.float32), recording.right.shape)
    near = Neighbours(recording.features)
    scaling = Scaling(np.zeros(2, np.float32), np.ones(2, np.float32))
    return ChainPolicy("chain", Chain(near, scaling, recording.right, cost, 3), paths, 0.05, recording.feature_names)


@pytest.mark.parametrize("kind", ["single", "cascade", "chain"])
@given(seed=st.integers(0, 1000), thresholds=st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_a_replay_is_what_the_driver_does(kind: str, seed: int, thresholds: list[float]) -> None:
    recording = drawn(seed, photographs=12)
    policy = {
        "single": Single("m"),
        "cascade": Cascade("cascade", rungs_of(recording.models, thresholds)),
        "chain": chain(recording),
    }[kind]
    for photograph in range(12):
        again = replay(policy, recording, photograph, TEMPERATURES, "l")
        run = driven(policy, recording, photograph, "l")
        assert isinstance(run.outcome, Decision)
        assert again.decision is not None
        assert again.ran == tuple(run.model for run in run.ran)
        assert again.models_ms == sum(COSTS_MS[model] for model in again.ran)
        assert again.decision.prediction.model == run.outcome.prediction.model
        assert again.decision.because == run.outcome.because
        assert again.decision.in_doubt == run.outcome.in_doubt
        assert np.array_equal(again.decision.prediction.probabilities, run.outcome.prediction.probabilities)


def run(policy: Policy, recording: Recording, fallback: str | None = "m") -> PolicyReplay:
    return replay_all(policy, recording, range(len(recording.classes)), EVEN, fallback)


class Refusing(Single):
    """Runs its model, and refuses to answer."""

    def __call__(self, photo: Evidence) -> Steps:
        yield from super().__call__(photo)
        raise InDoubtError("in doubt")


def test_a_refusal_is_no_answer() -> None:
    recording = drawn(2, photographs=6)
    refused = replay(Refusing("m"), recording, 5, EVEN, None)
    assert (refused.decision, refused.ran, refused.models_ms) == (None, ("m",), 3.0)
    assert isinstance(driven(Refusing("m"), recording, 5, None).outcome, InDoubtError)
    found = run(Refusing("m"), recording, None)
    assert found.answered.tolist() == [-1] * 6
    assert not found.is_top5.any()


def test_points_that_share_what_they_remember_take_the_time_of_the_first() -> None:
    found = run(Single("m"), drawn(2, photographs=6))
    times = {"chain": 0.3, "chain:1": 0.1, "single:m": 0.2}
    shared = share_choice_times({name: replace(found, choice_ms=ms) for name, ms in times.items()})
    assert {name: run.choice_ms for name, run in shared.items()} == {"chain": 0.3, "chain:1": 0.3, "single:m": 0.2}
