"""Each policy as a generator, fed by hand, with and without a promise of its errors."""

import dataclasses
import math

import numpy as np
import pytest
from msgspec import structs

from jetsel.artefact.promise import MissingPromise, Promise, Promises, log_odds
from jetsel.base.errors import InDoubtError, ModelUnavailableError, RequirementsError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Evidence, OutOfTime, Policy, Run
from jetsel.policies.single import Single
from jetsel.policies.with_promise import WithPromise
from jetsel.premodel import Chain, Neighbours
from tests.unit.policies.stepping import NOTHING, WHOLE, at, ended, said

CASCADE = Cascade("cascade", rungs_of(["s", "m", "l"], [0.8, 0.6]))


def test_cascade_stops_at_the_first_sure_rung() -> None:
    steps = CASCADE(NOTHING)
    assert next(steps).models == ("s",)
    assert steps.send((said("s", 0.79),)).models == ("m",)
    # Odds of 79 to 21 and of 3 to 7 give sqrt(79 / 21 x 3 / 7), 1.27 to 1; with 0.4, 1.58 to 1.
    decision = ended(steps, said("m", 0.4))
    assert decision.prediction.model == "m"
    assert "mean of s and m" in decision.because
    assert "confidence 0.61, threshold 0.60" in decision.because


def test_cascade_passes_over_an_unavailable_rung() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    run = steps.throw(ModelUnavailableError("s broke"))
    assert run == Run(("m",), "s is unavailable")
    assert ended(steps, said("m", 0.9)).prediction.model == "m"


def test_cascade_answers_with_the_best_so_far_where_the_last_rung_is_unavailable() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    steps.send((said("s", 0.5),))
    steps.send((said("m", 0.5),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(ModelUnavailableError("l broke"))
    assert stop.value.value.prediction.model == "m"
    assert "l is unavailable" in stop.value.value.because


def test_cascade_without_any_rung_is_unavailable() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    steps.throw(ModelUnavailableError("s"))
    steps.throw(ModelUnavailableError("m"))
    with pytest.raises(ModelUnavailableError):
        steps.throw(ModelUnavailableError("l"))


def test_the_answer_is_the_mean_of_the_scaled_logits_of_all_that_ran() -> None:
    # Odds of 4 to 1 and of 1 to 9: the geometric mean is sqrt(4 x 1/9) = 2/3 to 1.
    mean = CASCADE.answer([said("s", 0.8), said("l", 0.1)])
    assert mean.model == "l"
    assert mean.probabilities == pytest.approx([0.4, 0.6])
    assert mean.confidence == pytest.approx(0.6)


# At 0, 1 and 2 the small model is right, and the two together; at 10, 11 and 12 the two alone; at 20 to 22 nothing is.
POINTS = np.array([[0], [1], [2], [10], [11], [12], [20], [21], [22]], np.float32)
RIGHT = np.array([[1, 1]] * 3 + [[0, 1]] * 3 + [[0, 0]] * 3, np.bool_)
COST = np.array([[1, 11]] * 9, np.float32)
PATHS = Cascade("chain", rungs_of(["s"], [])), Cascade("chain", rungs_of(["s", "l"], [0.8]))


def chain(k: int = 3, price: float = 0.05) -> ChainPolicy:
    return ChainPolicy("chain", Chain(Neighbours(POINTS), WHOLE, RIGHT, COST, k), PATHS, price, ("contrast",))


@pytest.mark.parametrize(
    ("place", "price", "goes_on", "counts"),
    [
        (1.0, 0.05, False, "s is right on 3"),  # 1 - 0.05 against 1 - 0.55
        (11.0, 0.05, True, "s then l is right on 3"),  # 0 - 0.05 against 1 - 0.55
        (11.0, 0.2, False, "s is right on 0"),  # 0 - 0.2 against 1 - 2.2
        (21.0, 0.05, False, "s is right on 0"),  # nothing is right: the cheapest
    ],
)
def test_the_chain_follows_the_path_of_the_best_trade_among_the_neighbours(
    place: float, price: float, goes_on: bool, counts: str
) -> None:
    steps = chain(price=price)(at(place))
    run = next(steps)
    assert run.models == ("s",)
    assert f"of 3 neighbours, {counts}" in run.because
    if goes_on:
        assert steps.send((said("s", 0.5),)).models == ("l",)
        decision = ended(steps, said("l", 0.9))
    else:
        decision = ended(steps, said("s", 0.5))
    assert not decision.in_doubt
    assert decision.distance == pytest.approx(2 / 3)


def test_if_all_images_are_asked_the_chain_is_the_path_that_is_best_for_all() -> None:
    # Over all: 3 / 9 - 0.05 against 6 / 9 - 0.55, and with a price of 0.03 it is 3 / 9 - 0.03 against 6 / 9 - 0.33.
    for price, path in ((0.05, "s is right on 3"), (0.03, "s then l is right on 6")):
        for place in (1.0, 21.0):
            assert f"of 9 neighbours, {path}" in next(chain(9, price)(at(place))).because


def test_the_chain_follows_the_next_best_path_if_no_model_of_the_best_is_available() -> None:
    large = Cascade("chain", rungs_of(["l"], []))
    policy = dataclasses.replace(chain(), paths=(PATHS[0], large))
    steps = policy(at(1))
    assert next(steps).models == ("s",)
    assert steps.throw(ModelUnavailableError("s broke")).models == ("l",)
    with pytest.raises(ModelUnavailableError, match="l broke"):
        steps.throw(ModelUnavailableError("l broke"))


REFUSE, USE = NOTHING, Evidence(features=None, fallback="l")
PROMISING = Cascade("cascade", rungs_of(["s", "l"], [0.9]))
AT_80 = float(log_odds(0.8))  # answers of at least 0.8 are covered
EARLY_60 = float(log_odds(0.6))
PROMISE = Promise(0.05, AT_80, (EARLY_60,), answered=0.7, wrong=0.03)


def with_promise(policy: Policy = PROMISING) -> WithPromise:
    return WithPromise(policy, PROMISE)


def test_an_answer_that_is_sure_enough_carries_the_promise() -> None:
    steps = with_promise()(REFUSE)
    next(steps)
    decision = ended(steps, said("s", 0.95))
    assert (decision.in_doubt, decision.wrong_at_most) == (False, 0.05)
    assert decision.because == "s is sure: confidence 0.95, threshold 0.90"


def test_an_answer_below_the_threshold_is_refused_or_marked() -> None:
    steps = with_promise()(REFUSE)
    next(steps)
    assert steps.send((said("s", 0.7),)).models == ("l",)
    why = r"l is not sure enough \(probability 0.7257, but wrong_at_most 0.05 needs at least 0.8\)"
    with pytest.raises(InDoubtError, match=f'{why}. Send "on_doubt": "use"'):
        steps.send((said("l", 0.75),))
    steps = with_promise()(USE)
    next(steps)
    steps.send((said("s", 0.7),))
    decision = ended(steps, said("l", 0.75))
    assert (decision.in_doubt, decision.prediction.model, decision.wrong_at_most) == (True, "l", 0.05)
    assert decision.because.startswith("l is not sure enough")


def test_a_cascade_refuses_before_the_next_model_runs_and_marks_the_same_images() -> None:
    steps = with_promise()(REFUSE)
    next(steps)
    with pytest.raises(InDoubtError, match="s is so unsure that the next models do not run"):
        steps.send((said("s", 0.55),))
    steps = with_promise()(USE)
    next(steps)
    assert steps.send((said("s", 0.55),)).models == ("l",), "who uses doubtful answers gets the better model's"
    assert ended(steps, said("l", 0.99)).in_doubt, "though it is sure now: the promise was tested with early refusal"


def test_what_does_not_run_as_calibrated_is_in_doubt() -> None:
    steps = with_promise()(USE)
    next(steps)
    assert steps.throw(ModelUnavailableError("s is gone")).models == ("l",)
    decision = ended(steps, said("l", 0.99))
    assert decision.in_doubt
    assert "the promise does not hold: s is gone" in decision.because
    assert decision.covered is None, "it tells nothing of the images"
    steps = with_promise()(USE)
    next(steps)
    steps.send((said("s", 0.85),))
    with pytest.raises(StopIteration) as end:
        steps.throw(OutOfTime("l needs 9 ms"))
    assert (end.value.value.in_doubt, end.value.value.cut_short) == (True, True)
    assert end.value.value.because.startswith("the promise does not hold: too little time was left")
    steps = with_promise()(REFUSE)
    next(steps)
    with pytest.raises(ModelUnavailableError, match="s is gone"):
        steps.throw(ModelUnavailableError("s is gone"))


def test_time_that_is_over_before_anything_ran_is_no_doubt() -> None:
    steps = with_promise(Single("l"))(REFUSE)
    next(steps)
    with pytest.raises(OutOfTime):
        steps.throw(OutOfTime("l needs 9 ms"))


def test_the_score_is_the_log_odds_of_the_probability() -> None:
    assert log_odds(0.5) == 0.0
    assert log_odds(0.8) == pytest.approx(math.log(4))
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


def test_a_request_gets_the_highest_level_that_it_allows_or_hears_what_is_missing() -> None:
    kept = (PROMISE, structs.replace(PROMISE, wrong_at_most=0.1))
    missing = (MissingPromise(0.01, None), MissingPromise(0.02, 340))
    promises = Promises(kept, missing, recorded=100)
    assert [promises.promise_for(asked).wrong_at_most for asked in (0.05, 0.07, 0.3)] == [0.05, 0.05, 0.1]
    with pytest.raises(RequirementsError, match=r"0.03 cannot be promised: calibrate with about 240 more images"):
        promises.promise_for(0.03)
    with pytest.raises(RequirementsError, match="even its surest answers are wrong too often"):
        promises.promise_for(0.01)
    with pytest.raises(RequirementsError, match=r"the lowest level that is calibrated is 0.01"):
        promises.promise_for(0.005)
