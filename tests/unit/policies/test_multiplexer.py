"""The multiplexer as a policy: a generator fed by hand, and what a calibration stores of it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.policies.multiplexer import CheapestFirst, MultiplexerKind
from jetsel.policies.policy import Evidence, Prediction
from jetsel.policies.registry import KIND, USUAL, catalogue, kinds_with, no_such
from tests.unit.policies.animals import animals, multiplexer
from tests.unit.policies.stepping import ended, said

MODELS = ("s", "m", "l")
PHOTO = Evidence(None, "m")


@pytest.mark.parametrize(("price", "named"), [(0.0, "l"), (0.02, "m"), (0.11, "s")])
def test_the_cheapest_runs_once_and_the_model_most_worth_its_cost_after_it(price: float, named: str) -> None:
    # 0.5, 0.7, 0.8 at 0, 3, 10 ms: less 0.02 a ms 0.50, 0.64, 0.60; less 0.11 a ms 0.50, 0.37, -0.3.
    costs = np.array([0.0, 3.0, 10.0])
    steps = CheapestFirst("multiplexer", MODELS, lambda _: np.array([0.5, 0.7, 0.8]), costs, price)(PHOTO)
    assert next(steps).models == ("s",)
    if named == "s":
        assert ended(steps, said("s", 0.6)).seen.model == "s"
        return
    assert steps.send((said("s", 0.6),)).models == (named,)
    assert ended(steps, said(named, 0.9)).seen.model == named


def test_the_network_reads_probabilities_and_embedding_and_refuses_another_width() -> None:
    policy = MultiplexerKind().make(multiplexer(3, "top1"), animals())["top1"]["multiplexer"]
    assert isinstance(policy, CheapestFirst)
    assert policy.chances(Prediction("small", np.full(5, 0.2, np.float32), 0.2)).shape == (3,)
    wide = Prediction("small", np.full(5, 0.2, np.float32), 0.2, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="has 2 numbers, but 0 are expected"):
        policy.chances(wide)
    steps = policy(PHOTO)
    next(steps)
    assert ended(steps, wide).seen.model == "small"


def test_a_multiplexer_of_other_models_or_without_its_arrays_is_refused() -> None:
    with pytest.raises(CalibrationError, match="multiplexer: it predicts for 2 models, and the calibration has 3"):
        catalogue(["small"], msgspec.structs.replace(animals(), parts={"multiplexer": multiplexer(2, "top1")}))
    without = replace(multiplexer(3, "top1"), arrays={})
    with pytest.raises(CalibrationError, match="multiplexer: "):
        catalogue(["small"], msgspec.structs.replace(animals(), parts={"multiplexer": without}))


def test_it_is_fitted_only_on_request_and_whoever_names_it_learns_how() -> None:
    assert "multiplexer" not in {kind.name for kind in USUAL}
    assert {kind.name for kind in kinds_with(["multiplexer"])} == KIND.keys()
    assert "jetsel calibrate IMAGES --with multiplexer" in no_such("multiplexer", ["cascade", "single:s"])
