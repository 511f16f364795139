"""Policies with a promise, as generators fed by hand: what is answered, refused, refused early, and marked."""

import math

import numpy as np
import pytest
from msgspec import structs

from jetsel.artefact.promise import MissingPromise, Promise, Promises, log_odds
from jetsel.base.errors import InDoubtError, ModelUnavailableError, RequirementsError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.policy import Evidence, OutOfTime, Policy
from jetsel.policies.single import Single
from jetsel.policies.with_promise import WithPromise
from tests.unit.policies.stepping import NOTHING, ended, said

REFUSE, USE = NOTHING, Evidence(features=None, fallback="l")
CASCADE = Cascade("cascade", rungs_of(["s", "l"], [0.9]))
AT_80 = float(log_odds(0.8))  # answers of at least 0.8 are covered
EARLY_60 = float(log_odds(0.6))
PROMISE = Promise(0.05, AT_80, (EARLY_60,), answered=0.7, wrong=0.03)


def with_promise(policy: Policy = CASCADE) -> WithPromise:
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
