"""The driver: what it runs, what it batches, and what it does about time and failure. Engines here compute by table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.engines import EngineFailedError, Output, Place
from jetsel.errors import DeadlineError, EngineDiedError, JetselError, ModelUnavailableError
from jetsel.policies import Decision, Evidence, Prediction, Run
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Policy, Steps
from jetsel.policies.single import Single
from jetsel.runtime import Driver, Ended, Flight, Lane
from jetsel.runtime.driver import predict


class TableEngine:
    """Answers logits that say class 0 by the margin it was given; counts its batches."""

    def __init__(self, name: str, margin: float, concurrency: int = 1) -> None:
        self.name = name
        self.concurrency = concurrency
        self.place = Place()
        self.is_stale = False
        self.max_batch: int | None = None
        self.unavailable: str | None = None
        self.is_returning = False
        self.returns_within_s = 0.0
        self.margin = margin
        self.batches: list[int] = []
        self.failure: JetselError | None = None

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        count = sum(len(part) for part in parts)
        self.batches.append(count)
        if self.failure is not None:
            raise self.failure
        return Output(np.tile(np.array([self.margin, 0.0], np.float32), (count, 1)), None, None)

    def close(self) -> None:
        pass


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


ODD = np.log(0.9 / 0.1)  # the margin at which two classes stand 0.9 to 0.1


@pytest.fixture
def engines() -> dict[str, TableEngine]:
    return {"s": TableEngine("s", 0.1), "m": TableEngine("m", float(ODD)), "l": TableEngine("l", 5.0)}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(engines: dict[str, TableEngine], clock: Clock) -> Driver:
    return Driver({name: Lane(name, engine) for name, engine in engines.items()}, max_batch=3, now=clock)


def flight(policy: Policy, deadline_s: float | None = None) -> Flight:
    pixels: Callable[[str], NDArray[np.float32]] = lambda _: np.zeros((1, 3, 2, 2), np.float32)  # noqa: E731
    return Flight(policy, Evidence(None, None), "top1", pixels, deadline_s)


CASCADE = Cascade.of("cascade", ["s", "m", "l"], [0.8, 0.8])


def test_a_cascade_runs_until_a_model_is_sure(driver: Driver) -> None:
    request = flight(CASCADE)
    outcome = driver.finish(request)
    assert isinstance(outcome, Decision)
    assert outcome.seen.model == "m"
    assert outcome.seen.confidence == pytest.approx(0.9)
    assert [run.model for run in request.ran] == ["s", "m"]
    assert request.ran[1].because == "s was not sure: 0.52 of 0.80"


def test_a_run_that_another_model_s_followed_is_an_escalation(driver: Driver) -> None:
    requests = [flight(CASCADE), flight(CASCADE), flight(Single("s"))]
    for request in requests:
        driver.finish(request)
    told = {name: lane.record.counts() for name, lane in driver.lanes.items()}
    assert told == {"s": (3, 2), "m": (2, 0), "l": (0, 0)}
    times = driver.lanes["m"].record.percentiles_ms(Clock.now_s)
    assert times is not None
    assert times.p50 <= times.p95 <= times.p99 == pytest.approx(max(r.ran[1].latency_ms for r in requests[:2]))
    assert driver.lanes["l"].record.percentiles_ms(Clock.now_s) is None


def test_a_run_and_its_escalation_are_counted_at_once(driver: Driver) -> None:
    request = flight(CASCADE)
    driver.begin(request)
    seen = []
    while request.outcome is None:
        batch = driver.take()
        assert batch is not None
        driver.execute(batch)
        seen.append([lane.record.counts() for lane in driver.lanes.values()])
    assert seen == [[(1, 1), (0, 0), (0, 0)], [(1, 1), (1, 0), (0, 0)]], "however long the next model takes"


def test_between_two_looks_there_are_never_more_escalations_than_runs(driver: Driver) -> None:
    for _ in range(7):
        driver.begin(flight(CASCADE))
    before = [(0, 0)] * 3
    while (batch := driver.take()) is not None:
        driver.execute(batch)
        now = [lane.record.counts() for lane in driver.lanes.values()]
        grown = [(runs - earlier[0], more - earlier[1]) for (runs, more), earlier in zip(now, before, strict=True)]
        assert all(more <= runs for runs, more in grown), grown
        before = now
    assert before == [(7, 7), (7, 0), (0, 0)]


def test_waiting_for_a_model_is_told_for_all_runs_together(driver: Driver, clock: Clock) -> None:
    request = flight(CASCADE)
    driver.begin(request)
    for waited_s in (0.25, 0.5):
        clock.now_s += waited_s
        batch = driver.take()
        assert batch is not None
        driver.execute(batch)
    assert request.waiting_ms == pytest.approx(750)
    assert driver.finish(at_once := flight(Single("s"))) is at_once.outcome
    assert at_once.waiting_ms == 0


def test_waiting_runs_of_one_model_go_out_together_up_to_the_limit(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    flights = [flight(Single("m")) for _ in range(5)]
    began = [driver.begin(f) for f in flights]
    assert not any(began)
    first = driver.take()
    assert first is not None
    assert first.flights == flights[:3]
    assert driver.take() is None, "the engine serves one caller at a time"
    assert driver.execute(first) == flights[:3]
    second = driver.take()
    assert second is not None
    assert driver.execute(second) == flights[3:]
    assert engines["m"].batches == [3, 2]
    assert flights[0].ran[0].batch == 3
    assert driver.lanes["m"].record.counts() == (5, 0)


def test_patience_waits_for_a_whole_batch(driver: Driver) -> None:
    assert driver.max_batch == 3
    for waiting in range(3):
        assert driver.take(patient=True) is None, f"{waiting} of 3 wait"
        driver.begin(flight(Single("m")))
    batch = driver.take(patient=True)
    assert batch is not None
    assert len(batch.flights) == 3


def test_patience_ends_with_a_deadline_and_with_time(driver: Driver, clock: Clock) -> None:
    driver.begin(flight(Single("s")))
    assert driver.take(patient=True) is None
    driver.begin(flight(Single("m"), clock.now_s + 1))
    hurried = driver.take(patient=True)
    assert hurried is not None
    assert hurried.lane.model == "m"
    assert driver.take(patient=True) is None
    clock.now_s += 0.02
    late = driver.take(patient=True)
    assert late is not None
    assert late.lane.model == "s", "a model that few ask for is not starved by one that many do"


def test_the_longest_waiting_lane_goes_first(driver: Driver, clock: Clock) -> None:
    driver.begin(flight(Single("l")))
    clock.now_s += 1
    driver.begin(flight(Single("s")))
    batches = [driver.take(), driver.take()]
    assert [batch.lane.model for batch in batches if batch] == ["l", "s"]


def test_a_batch_stops_growing_before_it_hurts_a_deadline(driver: Driver, clock: Clock) -> None:
    driver.lanes["m"].times_ms.extend([10.0] * 20)
    hurried, patient = flight(Single("m"), clock.now_s + 0.015), flight(Single("m"))
    driver.begin(hurried)
    driver.begin(patient)
    batch = driver.take()
    assert batch is not None
    assert batch.flights == [hurried]


def test_a_failing_model_fails_its_requests_alone(driver: Driver, engines: dict[str, TableEngine]) -> None:
    engines["s"].failure = EngineFailedError("out of memory")
    outcome = driver.finish(flight(Single("s")))
    assert isinstance(outcome, ModelUnavailableError)
    assert "out of memory" in str(outcome)
    cascaded = driver.finish(flight(CASCADE))
    assert isinstance(cascaded, Decision)
    assert cascaded.seen.model == "m"


def test_numbers_that_are_not_finite_are_no_prediction(driver: Driver, engines: dict[str, TableEngine]) -> None:
    engines["s"].margin = float("nan")
    assert isinstance(driver.finish(flight(Single("s"))), ModelUnavailableError)


def test_a_model_that_did_not_load_is_unavailable_with_its_reason(driver: Driver) -> None:
    driver.lanes["s"] = Lane("s", None, unavailable="damaged file")
    outcome = driver.finish(flight(Single("s")))
    assert isinstance(outcome, ModelUnavailableError)
    assert "damaged file" in str(outcome)


def test_engines_at_one_place_share_its_callers(driver: Driver, engines: dict[str, TableEngine], clock: Clock) -> None:
    engines["m"].place = engines["l"].place = Place()
    for model in ("m", "l", "s"):
        driver.begin(flight(Single(model)))
        clock.now_s += 1
    first, second = driver.take(), driver.take()
    assert first is not None
    assert second is not None
    assert (first.lane.model, second.lane.model) == ("m", "s"), "l runs where m does"
    assert driver.take() is None
    driver.execute(first)
    third = driver.take()
    assert third is not None
    assert third.lane.model == "l"


def test_an_engine_s_own_limit_ends_a_batch(driver: Driver, engines: dict[str, TableEngine]) -> None:
    engines["m"].max_batch = 2
    for _ in range(3):
        driver.begin(flight(Single("m")))
    batch = driver.take(patient=True)
    assert batch is not None
    assert len(batch.flights) == 2


def go_away(engine: TableEngine, *, returns: bool = True) -> None:
    """What an engine looks like whose process has just died."""
    engine.failure = EngineDiedError("the host died") if returns else EngineFailedError("the host is given up")
    engine.unavailable = str(engine.failure)
    engine.is_returning, engine.returns_within_s = returns, 1.0


def come_back(engine: TableEngine) -> None:
    engine.failure, engine.unavailable, engine.is_returning = None, None, False


def died_while_running(driver: Driver, engine: TableEngine, request: Flight) -> list[Flight]:
    """Begin the request, let its engine die under the run, and return what has ended with that."""
    assert not driver.begin(request)
    batch = driver.take()
    assert batch is not None
    go_away(engine)
    return driver.execute(batch)


def test_a_run_that_died_with_its_engine_waits_for_it_and_is_run_again(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    request = flight(Single("m"))
    assert died_while_running(driver, engines["m"], request) == []
    assert driver.is_waited_for
    assert driver.take() is None, "it is away"
    come_back(engines["m"])
    again = driver.take()
    assert again is not None
    assert driver.execute(again) == [request]
    assert isinstance(request.outcome, Decision)
    assert engines["m"].batches == [1, 1]
    assert [run.model for run in request.ran] == ["m"], "what died is no run"


def test_a_run_that_dies_again_is_not_run_a_third_time(driver: Driver, engines: dict[str, TableEngine]) -> None:
    request = flight(Single("m"))
    died_while_running(driver, engines["m"], request)
    come_back(engines["m"])
    again = driver.take()
    assert again is not None
    go_away(engines["m"])
    assert driver.execute(again) == [request]
    assert isinstance(request.outcome, EngineDiedError)
    assert request.outcome.retry
    assert engines["m"].batches == [1, 1]


@pytest.mark.parametrize(("left_s", "waits"), [(0.9, False), (1.005, False), (1.015, True)])
def test_a_run_is_run_again_only_where_the_deadline_allows_it(
    driver: Driver, engines: dict[str, TableEngine], clock: Clock, left_s: float, waits: bool
) -> None:
    driver.lanes["m"].times_ms.extend([10.0] * 20)  # so it takes 1 s of coming back and 10 ms of running
    request = flight(Single("m"), clock.now_s + left_s)
    assert died_while_running(driver, engines["m"], request) == ([] if waits else [request])
    assert isinstance(request.outcome, EngineDiedError) != waits


def test_runs_that_wait_for_an_engine_that_is_given_up_fail(driver: Driver, engines: dict[str, TableEngine]) -> None:
    request, queued = flight(Single("m")), flight(Single("m"))
    driver.begin(queued)
    driver.lanes["m"].waiting.clear()  # it came a moment after the batch had gone
    driver._waiting = 0
    died_while_running(driver, engines["m"], request)
    driver.lanes["m"].waiting.append(queued)
    driver._waiting += 1
    go_away(engines["m"], returns=False)
    batch = driver.take()
    assert batch is not None
    assert driver.execute(batch) == [request, queued]
    for ended in (request, queued):
        assert isinstance(ended.outcome, ModelUnavailableError)
        assert "given up" in str(ended.outcome)
    assert not driver.is_waited_for


def test_a_run_waits_half_a_minute_at_most_for_an_engine_that_is_away(
    driver: Driver, engines: dict[str, TableEngine], clock: Clock
) -> None:
    request = flight(Single("m"))
    died_while_running(driver, engines["m"], request)
    clock.now_s += 29.9
    assert driver.take() is None
    clock.now_s += 0.2
    batch = driver.take()
    assert batch is not None
    assert driver.execute(batch) == [request]
    assert isinstance(request.outcome, EngineDiedError)


def test_a_request_that_comes_while_an_engine_is_away_may_be_sent_again(
    driver: Driver, engines: dict[str, TableEngine]
) -> None:
    go_away(engines["m"])
    outcome = driver.finish(flight(Single("m")))
    assert isinstance(outcome, EngineDiedError)
    assert outcome.retry
    assert "m is unavailable: the host died" in str(outcome)
    cascaded = driver.finish(flight(CASCADE))
    assert isinstance(cascaded, Decision), "models elsewhere serve on"
    assert cascaded.seen.model == "l"


def test_time_that_runs_out_between_two_models_leaves_the_best_so_far(driver: Driver, clock: Clock) -> None:
    driver.lanes["m"].times_ms.extend([50.0] * 20)
    request = flight(CASCADE, clock.now_s + 0.02)
    outcome = driver.finish(request)
    assert isinstance(outcome, Decision)
    assert outcome.seen.model == "s"
    assert request.cut_short


def test_no_time_for_any_model_is_a_deadline_error(driver: Driver, clock: Clock) -> None:
    driver.lanes["s"].times_ms.extend([50.0] * 20)
    assert isinstance(driver.finish(flight(CASCADE, clock.now_s + 0.02)), DeadlineError)


def test_the_floor_is_the_cheapest_first_step(driver: Driver) -> None:
    driver.lanes["s"].times_ms.extend([1.0, 2.0, 3.0])
    assert driver.floor_ms(CASCADE) == 2.0
    assert driver.floor_ms(Single("l")) == 0.0, "nothing measured yet"


class Duel:
    """Asks for two models at once and answers with the first to come, or the surer of both."""

    name, models, first, features = "duel", ("s", "m"), ("s", "m"), ()

    def __init__(self, until: str) -> None:
        self.until = until

    def __call__(self, photo: Evidence) -> Steps:
        seen: tuple[Prediction, ...] = yield Run(("s", "m"), "a duel", until=self.until)  # type: ignore[arg-type]
        return Decision(max(seen, key=lambda p: p.confidence), f"of {len(seen)}")


def test_all_of_several_models_are_waited_for(driver: Driver) -> None:
    outcome = driver.finish(flight(Duel("all")))
    assert isinstance(outcome, Decision)
    assert (outcome.seen.model, outcome.because) == ("m", "of 2")
    assert [lane.record.counts()[1] for lane in driver.lanes.values()] == [0, 0, 0], "neither was asked after the other"


def test_the_first_of_several_models_is_enough(driver: Driver) -> None:
    request = flight(Duel("first"))
    driver.begin(request)
    batches = [driver.take(), driver.take()]
    assert [driver.execute(b) for b in batches if b] == [[request], []]
    assert isinstance(request.outcome, Decision)
    assert (request.outcome.seen.model, request.outcome.because) == ("s", "of 1")


def test_predict_by_hand() -> None:
    logits = np.log(np.array([8, 4, 2, 1, 1], np.float32))
    assert predict("m", logits, 1.0, "top1").probabilities == pytest.approx([0.5, 0.25, 0.125, 0.0625, 0.0625])
    cooler = predict("m", logits, 0.5, "top1")  # squares the odds: 64, 16, 4, 1, 1 of 86
    assert cooler.confidence == pytest.approx(64 / 86)
    assert cooler.label == 0


def test_the_confidence_under_top5_is_that_of_five_labels() -> None:
    logits = np.log(np.array([4, 3, 3, 2, 2, 1, 1], np.float32))
    assert predict("m", logits, 1.0, "top5").confidence == pytest.approx(14 / 16)


class Notes:
    """Writes down what an observer is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def run(self, model: str, flights: Sequence[Flight]) -> Ended:
        return self._began(f"{model} for {', '.join(str(flight.tag) for flight in flights)}")

    def choice(self, flight: Flight) -> Ended:
        return self._began(f"{flight.tag} thinks")

    def _began(self, what: str) -> Ended:
        self.lines.append(what)
        return lambda: self.lines.append(f"{what}: ended")


def noted(driver: Driver) -> Notes:
    notes = driver.observer = Notes()
    return notes


def test_an_observer_is_told_of_each_choice_and_run_as_it_begins_and_ends(driver: Driver) -> None:
    notes = noted(driver)
    request = flight(CASCADE)
    request.tag = "a"
    driver.finish(request)
    told = ["a thinks", "s for a", "a thinks", "m for a", "a thinks"]
    assert notes.lines == [line for what in told for line in (what, f"{what}: ended")]


def test_an_observer_is_told_of_a_batch_as_one_run(driver: Driver) -> None:
    notes = noted(driver)
    for name in ("a", "b"):
        request = flight(Single("m"))
        request.tag = name
        driver.begin(request)
    batch = driver.take()
    assert batch is not None
    driver.execute(batch)
    assert [line for line in notes.lines if line.startswith("m ")] == ["m for a, b", "m for a, b: ended"]


def test_an_observer_is_told_of_the_end_of_a_run_that_fails(driver: Driver, engines: dict[str, TableEngine]) -> None:
    notes = noted(driver)
    engines["m"].failure = EngineFailedError("out of memory")
    assert isinstance(driver.finish(flight(Single("m"))), ModelUnavailableError)
    assert notes.lines[2:4] == ["m for None", "m for None: ended"]
    assert len(notes.lines) == 6
