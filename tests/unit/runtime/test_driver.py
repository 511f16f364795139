"""The driver: what it runs, what it batches, what it does about time and learns of it; and what it makes of logits."""

import numpy as np
import pytest

from jetsel.base.errors import DeadlineError
from jetsel.policies import Decision
from jetsel.policies.single import Single
from jetsel.runtime import Driver
from jetsel.runtime.model_queue import predict
from jetsel.runtime.model_times import FORGET_S, Estimate
from tests.unit.runtime.driving import (
    CASCADE,
    Clock,
    Duplicated,
    TableEngine,
    finish,
    have_run,
    models_of,
    queue,
    request_run,
    taken,
)


def test_a_cascade_runs_until_a_model_is_sure(driver: Driver) -> None:
    request = request_run(CASCADE)
    outcome = finish(driver, request)
    assert isinstance(outcome, Decision)
    assert outcome.prediction.model == "m"
    assert outcome.prediction.confidence == pytest.approx(0.759, abs=0.001)
    assert [run.model for run in request.ran] == ["s", "m"]
    assert request.ran[1].because == "s was not sure: confidence 0.52, threshold 0.80"


def test_a_run_that_another_model_s_followed_is_an_escalation(driver: Driver) -> None:
    requests = [request_run(CASCADE), request_run(CASCADE), request_run(Single("s"))]
    for request in requests:
        finish(driver, request)
    told = {name: one.times.counts() for name, one in driver.queues.items()}
    assert told == {"s": (3, 2), "m": (2, 0), "l": (0, 0)}
    times = driver.queues["m"].times.histogram()
    assert (sum(times.counts), times.sum_ms) == (2, pytest.approx(sum(r.ran[1].latency_ms for r in requests[:2])))
    assert sum(driver.queues["l"].times.histogram().counts) == 0


def test_a_run_and_its_escalation_are_counted_at_once(driver: Driver) -> None:
    request = request_run(CASCADE)
    driver.start(request)
    seen = []
    while request.outcome is None:
        driver.waiting.enqueue(request, models_of(request))
        batch = taken(driver)
        assert driver.execute(batch) == [request]
        seen.append([one.times.counts() for one in driver.queues.values()])
    assert seen == [[(1, 1), (0, 0), (0, 0)], [(1, 1), (1, 0), (0, 0)]], "however long the next model takes"


def test_waiting_for_a_model_is_told_for_all_runs_together(driver: Driver, clock: Clock) -> None:
    request = request_run(CASCADE)
    driver.start(request)
    for waited_s in (0.25, 0.5):
        driver.waiting.enqueue(request, models_of(request))
        clock.now_s += waited_s
        batch = taken(driver)
        driver.execute(batch)
    assert request.stages.waiting == pytest.approx(750)
    assert finish(driver, at_once := request_run(Single("s"))) is at_once.outcome
    assert at_once.stages.waiting == 0


def test_waiting_runs_of_one_model_go_out_together_up_to_the_limit(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    requests = [request_run(Single("m")) for _ in range(5)]
    queue(driver, *requests)
    first = taken(driver)
    assert first.runs == requests[:3]
    assert driver.waiting.next_batch() is None, "the engine serves one caller at a time"
    assert driver.execute(first) == requests[:3]
    image_ms = driver.queues["m"].times.percentile_ms(0.5)
    assert image_ms == pytest.approx(requests[0].ran[0].latency_ms / 3), "its images share the batch's time"
    second = taken(driver)
    assert driver.execute(second) == requests[3:]
    assert engines["m"].batches == [3, 2]
    assert requests[0].ran[0].batch == 3
    assert driver.queues["m"].times.counts() == (5, 0)


def test_a_thread_that_leaves_an_engine_takes_along_what_waits_for_it(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    place = engines["m"].caller_limiter
    assert place.enter(1)
    requests = [request_run(Single("m")) for _ in range(2)]
    for request in requests:
        driver.start(request)
        assert driver.continue_runs(request) == [], "another thread runs m"
    place.leave()
    third = request_run(Single("m"))
    driver.start(third)
    assert driver.continue_runs(third) == [*requests, third]
    assert engines["m"].batches == [3]


def test_the_longest_waiting_queue_goes_first(driver: Driver, clock: Clock) -> None:
    queue(driver, request_run(Single("l")))
    clock.now_s += 1
    queue(driver, request_run(Single("s")))
    batches = [driver.waiting.next_batch(), driver.waiting.next_batch()]
    assert [batch.queue.model for batch in batches if batch] == ["l", "s"]


def test_time_that_runs_out_between_two_models_leaves_the_best_so_far(driver: Driver, clock: Clock) -> None:
    have_run(driver.queues["m"], [50.0] * 20, clock.now_s)
    request = request_run(CASCADE, clock.now_s + 0.02)
    outcome = finish(driver, request)
    assert isinstance(outcome, Decision)
    assert outcome.prediction.model == "s"
    assert outcome.cut_short


def test_a_batch_is_as_short_as_its_soonest_deadline_wants(driver: Driver, clock: Clock) -> None:
    have_run(driver.queues["m"], [10.0] * 20, clock.now_s)
    for allowed_s in (0.025, 10.0, 0.5):  # the first has time for two of 10 ms, and the others for all three
        queue(driver, request_run(Single("m"), clock.now_s + allowed_s))
    batch = taken(driver)
    assert len(batch.runs) == 2


def test_a_run_is_refused_by_how_slow_the_model_sometimes_is(driver: Driver, clock: Clock) -> None:
    have_run(driver.queues["m"], [1.0] * 18 + [100.0] * 2, clock.now_s)
    assert isinstance(finish(driver, request_run(Single("m"), clock.now_s + 0.05)), DeadlineError)
    assert isinstance(finish(driver, request_run(Single("m"), clock.now_s + 0.2)), Decision)


def test_all_of_several_models_are_waited_for(driver: Driver) -> None:
    outcome = finish(driver, request_run(Duplicated(("s", "m"), "all")))
    assert isinstance(outcome, Decision)
    assert outcome.because == "s and m"
    assert [queue.times.counts()[1] for queue in driver.queues.values()] == [0, 0, 0], (
        "neither was asked after the other"
    )


@pytest.mark.parametrize(
    ("logits", "temperature", "probabilities"),
    [
        (np.log(np.array([1, 4, 16], np.float32)), 2.0, [1 / 7, 2 / 7, 4 / 7]),  # square roots: 1, 2 and 4 of 7
        (np.array([-1e4, 0, 1e4], np.float32), 0.5, [0, 0, 1]),
    ],
    ids=["divided", "large"],
)
def test_a_temperature_divides_the_logits_which_stay_as_they_are(
    logits: np.ndarray, temperature: float, probabilities: list[float]
) -> None:
    before = logits.copy()
    seen = predict("m", logits, temperature)
    np.testing.assert_allclose(seen.probabilities, probabilities, rtol=1e-6)
    assert (seen.confidence, seen.label) == (pytest.approx(probabilities[2]), 2)
    assert logits.tolist() == before.tolist()


def test_before_anything_was_seen_it_is_what_is_known() -> None:
    assert Estimate().mean_and_sd_ms(0.0) is None
    assert Estimate().mean_and_sd_ms(5.0, (10.0, 2.0)) == (10.0, 2.0)


def test_what_is_seen_often_decides() -> None:
    estimate = Estimate()
    for number in range(100):
        estimate.add(50.0 + number % 2, number * 0.01)
    mean_ms, deviation_ms = estimate.mean_and_sd_ms(1.0, (10.0, 2.0)) or (0.0, 0.0)
    assert mean_ms == pytest.approx(50.5, abs=1.5)
    assert 0.3 < deviation_ms < 1.5


def test_one_that_became_slow_is_known_within_a_few_and_tried_again_later() -> None:
    estimate = Estimate()
    for number in range(50):
        estimate.add(10.0, number * 0.1)
    for number in range(10):
        estimate.add(200.0, 5.0 + number * 0.1)
    slow_ms, _ = estimate.mean_and_sd_ms(6.0, (10.0, 1.0)) or (0.0, 0.0)
    later_ms, _ = estimate.mean_and_sd_ms(6.0 + 8 * FORGET_S, (10.0, 1.0)) or (0.0, 0.0)
    assert slow_ms > 100
    assert later_ms < 15


def test_one_time_alone_is_no_certainty_where_something_was_known() -> None:
    estimate = Estimate()
    estimate.add(100.0, 0.0)
    mean_ms, _ = estimate.mean_and_sd_ms(0.0, (10.0, 1.0)) or (0.0, 0.0)
    assert 80 < mean_ms < 100
