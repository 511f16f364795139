"""The driver: models that fail, engines that die, and the requests that wait for them."""

import pytest

from jetsel.base.errors import EngineDiedError, ModelUnavailableError
from jetsel.engines import CallerLimiter, EngineFailedError
from jetsel.policies import Decision
from jetsel.policies.single import Single
from jetsel.runtime import Driver, ModelQueue
from tests.unit.runtime.driving import (
    CASCADE,
    Clock,
    TableEngine,
    come_back,
    died_while_running,
    finish,
    go_away,
    have_run,
    queue,
    request_run,
    taken,
)


@pytest.mark.parametrize("fault", ["out of memory", "not finite: nan", "not finite: inf", "damaged file"])
def test_a_model_that_cannot_answer_fails_its_requests_alone(
    driver: Driver, engines: dict[str, TableEngine], fault: str
) -> None:
    words, _, number = fault.partition(": ")
    if number:
        engines["s"].margin = float(number)
    elif fault == "damaged file":
        driver.queues["s"] = ModelQueue("s", None, unavailable=fault)
    else:
        engines["s"].failure = EngineFailedError(fault)
    outcome = finish(driver, request_run(Single("s")))
    assert isinstance(outcome, ModelUnavailableError)
    assert words in str(outcome)
    cascaded = finish(driver, request_run(CASCADE))
    assert isinstance(cascaded, Decision)
    assert cascaded.prediction.model == "m"


def test_a_defect_ends_each_run_of_its_batch_and_frees_the_engine(
    driver: Driver, engines: dict[str, TableEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_run(Single("m")) for _ in range(2)]
    queue(driver, requests[0])
    driver.start(requests[1])
    defect = RuntimeError("a defect of ours")
    with monkeypatch.context() as broken:
        broken.setattr(engines["m"], "infer", lambda *_: (_ for _ in ()).throw(defect))
        assert driver.continue_runs(requests[1]) == requests
    assert [request.outcome for request in requests] == [defect, defect]
    assert isinstance(finish(driver, request_run(Single("m"))), Decision)


def test_engines_at_one_place_share_its_callers(driver: Driver, engines: dict[str, TableEngine], clock: Clock) -> None:
    engines["m"].caller_limiter = engines["l"].caller_limiter = CallerLimiter()
    for model in ("m", "l", "s"):
        queue(driver, request_run(Single(model)))
        clock.now_s += 1
    first, second = driver.waiting.next_batch(), driver.waiting.next_batch()
    assert (first.queue.model, second.queue.model) == ("m", "s"), "l runs where m does"
    assert driver.waiting.next_batch() is None
    driver.execute(first)
    third = taken(driver)
    assert third.queue.model == "l"


def test_an_engine_s_own_limit_ends_a_batch(driver: Driver, engines: dict[str, TableEngine]) -> None:
    engines["m"].max_batch = 2
    for _ in range(3):
        queue(driver, request_run(Single("m")))
    batch = taken(driver)
    assert len(batch.runs) == 2


def test_runs_that_died_with_their_engine_wait_for_it_and_are_run_again_in_their_order_and_first(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    requests = [request_run(Single("m")) for _ in range(3)]
    for request in requests[:2]:
        queue(driver, request)
    batch = taken(driver)
    queue(driver, requests[2])
    go_away(engines["m"])
    assert driver.execute(batch) == []
    assert driver.waiting
    assert driver.waiting.next_batch() is None, "it is away"
    come_back(engines["m"])
    again = taken(driver)
    assert [requests.index(one) for one in again.runs] == [0, 1, 2]
    assert driver.execute(again) == requests
    assert all(isinstance(request.outcome, Decision) for request in requests)
    assert engines["m"].batches == [2, 3]
    assert [run.model for run in requests[0].ran] == ["m"], "what died is no run"


def test_a_run_that_dies_again_is_not_run_a_third_time(driver: Driver, engines: dict[str, TableEngine]) -> None:
    request = request_run(Single("m"))
    died_while_running(driver, engines["m"], request)
    come_back(engines["m"])
    again = taken(driver)
    go_away(engines["m"])
    assert driver.execute(again) == [request]
    assert isinstance(request.outcome, EngineDiedError)
    assert request.outcome.retry
    assert engines["m"].batches == [1, 1]


@pytest.mark.parametrize(("left_s", "waits"), [(0.9, False), (1.005, False), (1.015, True)])
def test_a_run_is_run_again_only_where_the_deadline_allows_it(
    driver: Driver, engines: dict[str, TableEngine], clock: Clock, left_s: float, waits: bool
) -> None:
    have_run(driver.queues["m"], [10.0] * 20, clock.now_s)  # so it takes 1 s of coming back and 10 ms of running
    request = request_run(Single("m"), clock.now_s + left_s)
    assert died_while_running(driver, engines["m"], request) == ([] if waits else [request])
    assert isinstance(request.outcome, EngineDiedError) != waits


def test_runs_that_wait_for_an_engine_that_is_given_up_fail(driver: Driver, engines: dict[str, TableEngine]) -> None:
    request, queued = request_run(Single("m")), request_run(Single("m"))
    queue(driver, queued)
    driver.queues["m"].waiting.clear()  # it came a moment after the batch had gone
    died_while_running(driver, engines["m"], request)
    driver.queues["m"].waiting.append(queued)
    go_away(engines["m"], returns=False)
    batch = taken(driver)
    assert driver.execute(batch) == [request, queued]
    for ended in (request, queued):
        assert isinstance(ended.outcome, ModelUnavailableError)
        assert "given up" in str(ended.outcome)
    assert not driver.waiting


def test_a_run_waits_half_a_minute_at_most_for_an_engine_that_is_away(
    driver: Driver, engines: dict[str, TableEngine], clock: Clock
) -> None:
    request = request_run(Single("m"))
    died_while_running(driver, engines["m"], request)
    clock.now_s += 29.9
    assert driver.waiting.next_batch() is None
    clock.now_s += 0.2
    batch = taken(driver)
    assert driver.execute(batch) == [request]
    assert isinstance(request.outcome, EngineDiedError)


def test_a_request_that_comes_while_an_engine_is_away_may_be_sent_again(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    go_away(engines["m"])
    outcome = finish(driver, request_run(Single("m")))
    assert isinstance(outcome, EngineDiedError)
    assert outcome.retry
    assert "m is unavailable: the host died" in str(outcome)
    cascaded = finish(driver, request_run(CASCADE))
    assert isinstance(cascaded, Decision), "models elsewhere serve on"
    assert cascaded.prediction.model == "l"
