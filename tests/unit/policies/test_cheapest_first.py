"""The multiplexer as a generator fed by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.multiplexer import CheapestFirst
from jetsel.policies.policy import Evidence, Prediction
from tests.unit.policies.stepping import ended

NOTHING = Evidence(features=None, fallback="l")
GONE = ModelUnavailableError("gone")


def said(model: str, *probabilities: float, embedding: float | None = None) -> Prediction:
    features = None if embedding is None else np.array([embedding], np.float32)
    return Prediction(model, np.array(probabilities, np.float32), max(probabilities), features)


def chances_of(*likely: float) -> NDArray[np.float64]:
    return np.array(likely)


def cheapest_first(price: float) -> CheapestFirst:
    def chances(seen: Prediction) -> NDArray[np.float64]:
        if seen.embedding is None:
            raise ValueError("it gave no embedding")
        return chances_of(float(seen.embedding[0]), 0.7, 0.9)

    return CheapestFirst("multiplexer", ("s", "m", "l"), chances, np.array([0.0, 2.0, 10.0]), price)


@pytest.mark.parametrize(
    ("price", "seen", "then"),
    [
        (0.0, 0.6, "l"),  # time costs nothing: 0.9 is the best chance
        (0.0, 0.95, None),
        (0.04, 0.6, "m"),  # 0.6, 0.7 - 0.08, 0.9 - 0.4
        (0.06, 0.6, None),  # 0.6, 0.58, 0.3
    ],
)
def test_the_cheapest_goes_on_to_what_is_worth_its_time(price: float, seen: float, then: str | None) -> None:
    steps = cheapest_first(price)(NOTHING)
    assert next(steps).models == ("s",)
    first = said("s", 0.5, 0.5, embedding=seen)
    if then is None:
        assert ended(steps, first).prediction.model == "s"
    else:
        assert steps.send((first,)).models == (then,)
        assert ended(steps, said(then, 1.0)).prediction.model == then


def test_an_embedding_that_is_missing_or_leads_nowhere_leaves_the_cheapest_model_s_answer() -> None:
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    assert "no embedding" in ended(steps, said("s", 0.5, 0.5)).because
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    steps.send((said("s", 0.5, 0.5, embedding=0.1),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(GONE)
    assert stop.value.value.prediction.model == "s"
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    assert steps.throw(GONE).models == ("l",), "where the cheapest is unavailable, the best stands in"
    assert ended(steps, said("l", 0.5, 0.5)).prediction.model == "l"
