"""What is learned from answers cannot end all answers: a daemon on a clock that is set, after whatever came before."""

from collections import deque
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.config import ServerSettings
from jetsel.base.errors import JetselError
from jetsel.daemon.admission import Admission, Load, Work
from jetsel.daemon.pace import allowed_ms
from jetsel.engines import Output
from jetsel.policies import Decision
from jetsel.policies.front import Front, Point
from jetsel.policies.single import Single
from jetsel.runtime import Driver, ModelQueue, RequestRun
from jetsel.runtime.forecast import Allowance, outlook
from jetsel.runtime.model_queue import SentImage
from tests.unit.runtime.driving import Asked, Clock, TableEngine

WORKERS, LIMIT_MS = 2, 100.0
MODELS_MS = {"l": 10.0, "s": 2.0}
FRONT = Front(tuple(Point(Single(name), ms / 20, ms, {name: 1.0}, 0.0, None) for name, ms in MODELS_MS.items()), 1)
LOAD = Load("uid 0", 0, 0)


class TimedEngine(TableEngine):
    """Takes its time, and longer once if the machine stalls."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, 1.0, concurrency=WORKERS)
        self.clock, self.stall_s = clock, 0.0

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        self.clock.now_s += MODELS_MS[self.name] / 1e3 + self.stall_s
        self.stall_s = 0.0
        return super().infer(*parts)


class Daemon:
    """Its admission, pace, operating points and driver, one request after the other. target_ms: as configured."""

    def __init__(self, target_ms: float | None = LIMIT_MS, *, is_calibrated: bool = True) -> None:
        self.clock, self.target_ms = Clock(), target_ms
        self.engines = {name: TimedEngine(name, self.clock) for name in MODELS_MS}
        queues = {name: ModelQueue(name, engine) for name, engine in self.engines.items()}
        for name, queue in queues.items():
            queue.prior_ms = (MODELS_MS[name], 0.1) if is_calibrated else None
        self.driver = Driver(queues, now=self.clock)
        self.admission = Admission(ServerSettings(), WORKERS, self.clock)
        self.waiting: deque[tuple[Single | None, float | None, float, bool]] = deque()

    def let_in(self, named: Single | None = None, deadline_ms: float | None = None) -> bool:
        """Admit a request, or refuse it. named: the policy that it names, whatever the target."""
        floor_ms, _ = self.driver.least_times_ms(*([named] if named else [one.policy for one in FRONT.points]))
        target_ms = None if named else self.target_ms
        try:
            was_near = self.admission.admit(LOAD, deadline_ms, floor_ms, target_ms=target_ms, adapts=named is None)
        except JetselError:
            return False
        self.waiting.append((named, deadline_ms, self.clock.now_s, was_near))
        return True

    def serve(self, around_ms: float = 3.0) -> bool:
        """Do as a worker does with the next request; return whether it was answered. around_ms: beside the models."""
        named, deadline_ms, received_s, was_near = self.waiting.popleft()
        limit_ms = deadline_ms if named else self.target_ms or deadline_ms
        pace_ms = allowed_ms(limit_ms or 1e9, self.admission.in_queue, WORKERS, self.admission.overhead_ms)
        self.clock.now_s += around_ms / 1e3
        target_s, deadline_s = (None if ms is None else received_s + ms / 1e3 for ms in (limit_ms, deadline_ms))
        sent = SentImage((96, 96), None)
        ahead = outlook(self.driver.queues, target_s or 1e9, self.clock.now_s, sent, Allowance(pace_ms))
        run = RequestRun(None, None, ahead, policy=named or FRONT.select_now(ahead).policy, request=Asked(deadline_s))
        self.driver.start(run)
        self.driver.continue_runs(run)
        models_ms = sum(ran.latency_ms for ran in run.ran)
        limit_share = None if limit_ms is None or not was_near else (self.clock.now_s - received_s) * 1e3 / limit_ms
        is_answered = isinstance(run.outcome, Decision)
        self.admission.release(LOAD, Work(around_ms + models_ms, models_ms, limit_share) if is_answered else None)
        return is_answered

    def work(self, requests: int, named: Single | None = None, *, around_ms: float = 3.0, stall_s: float = 0.0) -> None:
        """Let requests in, and serve those that were. stall_s: the next run of each model takes so much longer."""
        for _ in range(requests):
            self.let_in(named)
        for engine in self.engines.values():
            engine.stall_s = stall_s
        while self.waiting:
            self.serve(around_ms)


def large_images(daemon: Daemon) -> None:
    """PNGs of 12 megapixels, whose requests name their model."""
    for _ in range(4):
        daemon.work(8, Single("l"), around_ms=340.0)


def stalls(daemon: Daemon) -> None:
    for _ in range(3):
        daemon.work(4, stall_s=3.0)
    daemon.clock.now_s += 86_400.0


def a_slow_first_run(daemon: Daemon) -> None:
    daemon.work(1, Single("l"), stall_s=3.0)


@pytest.mark.parametrize(
    ("before", "is_calibrated", "target_ms"),
    [
        (large_images, True, LIMIT_MS),
        (stalls, False, LIMIT_MS),
        (stalls, True, None),
        (a_slow_first_run, False, None),
    ],
)
def test_clients_with_limits_are_soon_answered_again(
    before: Callable[[Daemon], None], is_calibrated: bool, target_ms: float | None
) -> None:
    daemon = Daemon(target_ms, is_calibrated=is_calibrated)
    before(daemon)
    answered = 0
    for _ in range(100):  # three minutes and a half of a client that asks every other second
        daemon.clock.now_s += 2.0
        answered += daemon.let_in(deadline_ms=LIMIT_MS) and daemon.serve()
    assert answered >= 50


def test_late_answers_that_no_queue_delayed_refuse_nobody() -> None:
    daemon = Daemon()
    for _ in range(100):
        daemon.work(4, stall_s=0.1)
    daemon.work(1)
    assert [daemon.let_in() for _ in range(20)] == [True] * 20


def test_what_cannot_be_in_time_behind_a_long_queue_is_still_refused_after_a_day_of_rest() -> None:
    daemon = Daemon()
    for _ in range(60):
        daemon.work(1)
    daemon.clock.now_s += 86_400.0
    admitted = sum(daemon.let_in() for _ in range(200))
    # Each that is ahead takes (3 + 2) / 2 ms at the cheapest point: 38 of them 95 ms, which leaves 5 for its own.
    assert admitted == 40
