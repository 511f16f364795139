"""The driver and models that are unloaded: who waits for a load, who cannot, and that it begins for both."""

import math
import threading
from functools import partial

import pytest

from jetsel.base.errors import DeadlineError
from jetsel.engines import OnDemandEngine
from jetsel.policies import Decision
from jetsel.policies.single import Single
from jetsel.runtime import Driver, ModelQueue, RequestRun
from jetsel.runtime.forecast import load_for_later_requests, outlook
from jetsel.runtime.model_queue import SentImage
from tests.unit.runtime.driving import CASCADE, Clock, TableEngine, finish, have_run, queue, request_run, taken
from tests.waiting import LIMIT_S, until

LOAD_S = 0.3


class Rig:
    """The driver's models s and l; l is loaded by its first load, and by later ones once `gate` is set."""

    def __init__(self, driver: Driver, engines: dict[str, TableEngine], clock: Clock) -> None:
        self.driver, self.clock, self.table = driver, clock, engines["l"]
        self.gate, self.changes = threading.Event(), threading.Semaphore(0)
        self.gate.set()
        self.engine = OnDemandEngine(self.load, self.changes.release, clock)
        self.gate.clear()
        self.queue = driver.queues["l"] = ModelQueue("l", self.engine)
        driver.waiting = type(driver.waiting)(driver.queues, 3, clock)
        for name, ms in (("s", 2.0), ("l", 20.0)):
            have_run(driver.queues[name], [ms] * 20, clock.now_s)

    def load(self) -> TableEngine:
        assert self.gate.wait(LIMIT_S)
        self.clock.now_s += LOAD_S
        return self.table

    def loaded(self) -> None:
        """Let the load end that has begun, and wait for that."""
        self.gate.set()
        assert self.changes.acquire(timeout=LIMIT_S), "none had begun"


@pytest.fixture
def rig(driver: Driver, engines: dict[str, TableEngine], clock: Clock) -> Rig:
    made = Rig(driver, engines, clock)
    assert made.engine.unload()
    return made


def begun(rig: Rig, run: RequestRun) -> list[RequestRun]:
    rig.driver.start(run)
    return rig.driver.continue_runs(run)


def test_runs_wait_for_the_load_and_go_out_together(rig: Rig) -> None:
    assert rig.queue.state == "unloaded"
    runs = [request_run(Single("l")) for _ in range(3)]
    assert [begun(rig, run) for run in runs] == [[], [], []]
    assert isinstance(finish(rig.driver, request_run(Single("s"))), Decision), "other models serve meanwhile"
    rig.loaded()
    assert rig.driver.continue_runs() == runs
    assert all(isinstance(run.outcome, Decision) for run in runs)
    assert rig.table.batches == [3]
    assert runs[0].stages.waiting == pytest.approx(LOAD_S * 1e3)
    assert rig.queue.state == "ready"


def test_a_run_whose_model_is_unloaded_under_it_waits_for_the_load(rig: Rig) -> None:
    rig.engine.request_load()
    rig.loaded()
    run = request_run(Single("l"))
    queue(rig.driver, run)
    batch = taken(rig.driver)
    assert rig.engine.unload()
    assert rig.driver.execute(batch) == []
    assert rig.driver.continue_runs() == [], "it has the load begin"
    rig.loaded()
    assert rig.driver.continue_runs() == [run]
    assert isinstance(run.outcome, Decision)


@pytest.mark.parametrize(("left_s", "waits"), [(0.315, False), (0.325, True)])
def test_a_deadline_is_compared_with_the_load_and_the_run(rig: Rig, left_s: float, waits: bool) -> None:
    run = request_run(Single("l"), rig.clock.now_s + left_s)
    assert begun(rig, run) == ([] if waits else [run])
    assert isinstance(run.outcome, DeadlineError) != waits
    rig.loaded()  # it has begun for the next one
    assert isinstance(finish(rig.driver, request_run(Single("l"), rig.clock.now_s + 0.03)), Decision)


def test_a_cascade_that_cannot_wait_answers_by_what_is_loaded(rig: Rig) -> None:
    run = request_run(CASCADE, rig.clock.now_s + 0.1)
    rig.driver.queues["m"].unavailable, rig.driver.queues["m"].engine = "left out", None
    outcome = finish(rig.driver, run)
    assert isinstance(outcome, Decision)
    assert (outcome.prediction.model, outcome.cut_short) == ("s", True)
    rig.loaded()


def test_the_least_time_of_a_policy_has_the_load_beside_the_run(rig: Rig) -> None:
    assert rig.driver.least_times_ms(CASCADE) == (2.0, 0.0)
    assert rig.driver.least_times_ms(Single("m")) == (0.0, 0.0), "nothing measured yet"
    assert rig.driver.least_times_ms(Single("l")) == pytest.approx((20.0, LOAD_S * 1e3))
    rig.loaded()
    assert rig.driver.least_times_ms(Single("l")) == (20.0, 0.0)


def test_a_load_is_in_a_model_s_time_and_begins_where_it_alone_keeps_it_from_the_deadline() -> None:
    engines = {name: OnDemandEngine(partial(TableEngine, name, 1.0), lambda: None) for name in ("s", "m", "l")}
    queues = {name: ModelQueue(name, engine) for name, engine in engines.items()}
    for (name, one), run_ms in zip(queues.items(), (2.0, 10.0, 40.0), strict=True):
        one.prior_ms = (run_ms, 1.0)
        engines[name].load_ms = 100.0
    for name in ("m", "l"):
        engines[name].unload()
    ahead = outlook(queues, 100.03, 100.0, SentImage((4, 4), None))
    assert ahead.budget_ms == pytest.approx(30)
    assert ahead.models_ms == {"s": (2.0, 1.0), "m": (110.0, math.hypot(1, 10)), "l": (140.0, math.hypot(1, 10))}
    load_for_later_requests(queues, ["s", "l"], ahead)
    assert not engines["m"].is_loaded, "nobody asks for it"
    load_for_later_requests(queues, ["s", "m", "l"], ahead)
    until(lambda: engines["m"].is_loaded)
    assert not engines["l"].is_loaded, "it is too slow in any case"
    engines["l"]._failures.reason = "its file is damaged"  # until a moment ago
    load_for_later_requests(queues, ["s", "m", "l"], ahead)
    until(lambda: engines["l"].is_loaded)
