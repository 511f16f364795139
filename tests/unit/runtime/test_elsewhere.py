"""Runs elsewhere beside runs here: what is waited for, until when, and what becomes of the rest."""

import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from jetsel.base.errors import DeadlineError, EngineDiedError, JetselError, ModelUnavailableError
from jetsel.policies import Decision, Evidence, Prediction, Run
from jetsel.policies.policy import Steps
from jetsel.runtime import Driver, ModelQueue, RequestRun, Timers
from jetsel.runtime.model_queue import RemoteForecast, ResultCallback
from jetsel.runtime.shared_runs import Timer
from tests.unit.runtime.driving import Duplicated, TableEngine, finish, have_run, models_of, request_run, taken
from tests.waiting import until

FAR_S = 600.0  # a deadline that no test lives to see


class Place:
    """A place elsewhere whose results come when a test brings them."""

    def __init__(self) -> None:
        self.unavailable: str | None = None
        self.submitted: list[tuple[str, ResultCallback]] = []
        self.cancelled: list[int] = []  # numbers of those that were cancelled

    def forecast(self, *_: object) -> RemoteForecast:
        return RemoteForecast(None, None, None)

    def submit(self, model: str, run: RequestRun, arrived: ResultCallback) -> Callable[[], None]:
        self.submitted.append((model, arrived))
        return partial(self.cancelled.append, len(self.submitted) - 1)

    def bring(self, number: int = -1, error: JetselError | None = None) -> None:
        model, arrived = self.submitted[number]
        arrived(error or Prediction(model, np.array([0.1, 0.9], np.float32), 0.9), None, None)


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def roused() -> threading.Event:
    return threading.Event()


@pytest.fixture
def both(engines: dict[str, TableEngine], place: Place, roused: threading.Event) -> Driver:
    """A driver whose s runs here and whose far runs elsewhere."""
    queues = {"s": ModelQueue("s", engines["s"]), "far": ModelQueue("far", None, runner=place)}
    return Driver(queues, timers=Timers(roused.set))


def begin(driver: Driver, until: str, deadline_s: float | None = None, *models: str) -> RequestRun:
    run = request_run(Duplicated(models or ("s", "far"), until), deadline_s)
    driver.start(run)
    return run


def soon(seconds: float = 0.05) -> float:
    return time.monotonic() + seconds


def said(run: RequestRun) -> str:
    assert isinstance(run.outcome, Decision), run.outcome
    return run.outcome.because


def test_a_run_elsewhere_leaves_the_thread_free_and_its_result_goes_on_with_the_next(
    both: Driver, place: Place, roused: threading.Event
) -> None:
    run = begin(both, "all", None, "far")
    assert both.continue_runs(run) == []
    assert not both.has_work
    place.bring()
    assert roused.is_set()
    assert both.has_work
    assert both.continue_runs() == [run]
    assert said(run) == "far"
    assert [(one.model, one.because) for one in run.ran] == [("far", "together")]
    assert both.queues["far"].times.counts() == (1, 0)
    assert both.queues["far"].times.percentile_ms(0.5) is not None


def test_the_first_of_them_is_enough_and_the_other_is_cancelled(
    both: Driver, place: Place, engines: dict[str, TableEngine]
) -> None:
    run = begin(both, "first")
    assert both.continue_runs(run) == [run]
    assert said(run) == "s"
    assert place.cancelled == [0]
    place.bring()
    assert not both.has_work, "it came too late"
    assert [one.model for one in run.ran] == ["s"]
    engines["s"].caller_limiter.enter(1)  # s is busy: the run waits for it
    second = begin(both, "first")
    assert both.continue_runs(second) == []
    place.bring()
    assert both.continue_runs() == [second]
    assert said(second) == "far"
    engines["s"].caller_limiter.leave()
    assert both.waiting.next_batch() is None, "it waits for s no more"


@pytest.mark.parametrize("models", [("s", "far"), ("far",)], ids=["the best so far answers", "nothing has come"])
def test_a_deadline_ends_the_wait(both: Driver, place: Place, roused: threading.Event, models: tuple[str, ...]) -> None:
    run = begin(both, "deadline", soon(), *models)
    assert both.continue_runs(run) == []
    until(roused.is_set)
    assert both.continue_runs() == [run]
    assert place.cancelled == [0]
    place.bring()
    assert not both.has_work
    if models == ("far",):
        assert isinstance(run.outcome, DeadlineError)
        return
    assert said(run) == "s"
    assert isinstance(run.outcome, Decision)
    assert not run.outcome.cut_short


def test_nothing_is_waited_for_once_the_best_is_there(
    both: Driver, place: Place, engines: dict[str, TableEngine]
) -> None:
    engines["s"].caller_limiter.enter(1)
    run = begin(both, "deadline", soon(FAR_S))
    assert both.continue_runs(run) == []
    timer = run.shared.cancellations[0].__self__
    assert isinstance(timer, Timer)
    place.bring()
    assert both.continue_runs() == [run]
    assert said(run) == "far"
    assert timer.callback is None, "it holds no photograph until the deadline"


class Held(Duplicated):
    """Holds its run here back for so long that it begins at once, or not before the test's end."""

    def __init__(self, held_ms: float) -> None:
        super().__init__(("s", "far"), "deadline")
        self.held_ms = held_ms

    def __call__(self, photo: Evidence) -> Steps:
        seen = yield Run(self.models, "held", "deadline", self.held_ms)
        return Decision(seen[-1], " and ".join(one.model for one in seen))


def test_a_run_here_is_spared_where_the_edge_s_answer_comes_first(
    both: Driver, place: Place, engines: dict[str, TableEngine]
) -> None:
    run = request_run(Held(1.0), soon(FAR_S))
    both.start(run)
    assert both.continue_runs(run) == []
    place.bring()
    assert both.continue_runs() == [run]
    assert (said(run), engines["s"].batches) == ("far", [])


@pytest.mark.parametrize("fails", [True, False], ids=["it fails", "it does not come"])
def test_a_run_here_begins_in_time_where_nothing_comes(
    both: Driver, place: Place, roused: threading.Event, fails: bool
) -> None:
    run = request_run(Held(1.0 if fails else (FAR_S - 0.1) * 1e3), soon(FAR_S))
    both.start(run)
    assert both.continue_runs(run) == []
    if fails:
        place.bring(error=EngineDiedError("the link is gone"))
    until(roused.is_set)
    both.continue_runs()
    if not fails:
        assert run.outcome is None, "the edge's answer may come still"
        place.bring()
        both.continue_runs()
    assert said(run) == ("s" if fails else "s and far")


def test_what_fails_elsewhere_costs_nothing_where_something_comes(both: Driver, place: Place) -> None:
    run = begin(both, "deadline", soon(FAR_S))
    both.continue_runs(run)
    place.bring(error=EngineDiedError("the link is gone"))
    assert both.continue_runs() == [run]
    assert said(run) == "s"
    alone = begin(both, "deadline", soon(FAR_S), "far")
    both.continue_runs(alone)
    place.bring(error=EngineDiedError("the link is gone"))
    assert both.continue_runs() == [alone]
    assert isinstance(alone.outcome, EngineDiedError)


@pytest.mark.parametrize(("kind", "is_refused"), [("first", False), ("deadline", False), ("all", True)])
def test_a_place_that_is_slow_or_away_ends_a_request_only_where_all_are_waited_for(
    both: Driver, place: Place, kind: str, is_refused: bool
) -> None:
    have_run(both.queues["s"], [20.0] * 9, time.monotonic())
    have_run(both.queues["far"], [3_600_000.0] * 9, time.monotonic())
    assert isinstance(begin(both, kind, soon(FAR_S)).outcome, DeadlineError) == is_refused
    place.unavailable = "no link"
    run = begin(both, kind, soon(FAR_S))
    assert isinstance(run.outcome, ModelUnavailableError) == is_refused
    assert "no link" in str(run.outcome) if is_refused else models_of(run) == ("s",)


def test_runs_that_are_shared_end_once_however_many_threads_bring_results(
    both: Driver, place: Place, roused: threading.Event
) -> None:
    runs = [
        begin(both, kind, deadline) for kind in ("first", "deadline") for deadline in (soon(FAR_S), soon(0.01)) * 25
    ]
    ended: list[RequestRun] = []

    def carry(*given: RequestRun) -> None:
        ended.extend(both.continue_runs(*given))

    def bring() -> None:
        brought = 0
        while len(ended) < len(runs):  # those that ended before they were sent out are never submitted
            if brought < len(place.submitted):
                place.bring(brought)
                brought += 1
            carry()

    jobs: list[Callable[[], None]] = [lambda: carry(*runs[:50]), lambda: carry(*runs[50:]), bring]
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(id, ended)) == sorted(map(id, runs)), "each once"
    assert not both.has_work


def test_a_policy_s_defect_after_a_result_from_elsewhere_ends_that_run_alone(both: Driver, place: Place) -> None:
    class Broken(Duplicated):
        def __call__(self, photo: Evidence) -> Steps:
            yield Run(("far",), "", until="first")
            raise ZeroDivisionError

    run = request_run(Broken(("far",), "first"))
    both.start(run)
    both.continue_runs(run)
    place.bring()
    assert both.continue_runs() == [run]
    assert isinstance(run.outcome, ZeroDivisionError)
    assert isinstance(finish(both, request_run(Duplicated(("s",), "all"))), Decision)


def test_a_run_that_went_out_is_not_taken_back_and_counts_for_its_model(
    both: Driver, place: Place, engines: dict[str, TableEngine]
) -> None:
    run = begin(both, "deadline", soon(FAR_S))
    queue_of_s = both.queues["s"]
    both.waiting.enqueue(run, ("s",))
    batch = taken(both)
    both.shared.start_models(run)  # as another thread does
    place.bring()
    assert both.execute(batch) == []
    assert queue_of_s.times.counts() == (1, 0)
    assert said(run) == "far"
    assert [one.model for one in run.ran] == ["far"]


def test_what_is_sent_out_after_its_result_came_from_another_place_is_cancelled(
    place: Place, engines: dict[str, TableEngine]
) -> None:
    class Slow(Place):
        """Its request is on its way only after the other's result is there."""

        def submit(self, model: str, run: RequestRun, arrived: ResultCallback) -> Callable[[], None]:
            cancel = super().submit(model, run, arrived)
            place.bring()
            return cancel

    slow = Slow()
    queues = {"far": ModelQueue("far", None, runner=place), "slow": ModelQueue("slow", None, runner=slow)}
    driver = Driver(queues, timers=Timers(lambda: None))
    run = begin(driver, "first", None, "far", "slow")
    assert driver.continue_runs(run) + driver.continue_runs() == [run]
    assert said(run) == "far"
    assert slow.cancelled == [0]
