"""What is learned from answers cannot end all answers: a daemon on a clock that is set, after whatever came before."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jetsel.base.config import Server
from jetsel.base.errors import JetselError
from jetsel.daemon.admission import Admission, Load, Work
from jetsel.daemon.pace import allowed_ms
from jetsel.engines import Output
from jetsel.policies import Decision
from jetsel.policies.front import Front, Point
from jetsel.policies.single import Single
from jetsel.runtime import Driver, ModelQueue, RequestRun
from jetsel.runtime.forecast import outlook
from tests.unit.runtime.driving import Asked, Clock, TableEngine

WORKERS, LIMIT_MS = 2, 100.0
MODELS_MS = {"l": 10.0, "s": 2.0}
FRONT = Front(tuple(Point(Single(name), ms / 20, ms, {name: 1.0}, 0.0, None) for name, ms in MODELS_MS.items()), 1)
LOAD = Load("uid 0", 0, 0)
AROUND_MS = {"small": 3.0, "large": 340.0}  # of a PNG of 12 megapixels


class TimedEngine(TableEngine):
    """Takes its time, and longer once if the machine stalls."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, 1.0, concurrency=WORKERS)
        self.clock, self.stall_s = clock, 0.0

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        self.clock.now_s += MODELS_MS[self.name] / 1e3 + self.stall_s
        self.stall_s = 0.0
        return super().infer(*parts)


@dataclass
class Ask:
    """One request. names_model: it takes the model l, whatever the target; is_bad: its image cannot be decoded."""

    image: str = "small"
    deadline_ms: float | None = None
    names_model: bool = False
    is_bad: bool = False


class Serve(NamedTuple):
    """Workers answer requests."""

    requests: int


class Stall(NamedTuple):
    """The next run of each model takes so much longer."""

    seconds: float


class Rest(NamedTuple):
    """Nothing happens."""

    seconds: float


Event = list[Ask] | Serve | Stall | Rest


@dataclass(eq=False)
class Daemon:
    """Its admission, pace, operating points and driver, one request after the other. target_ms: as configured."""

    is_calibrated: bool
    target_ms: float | None
    clock: Clock = field(default_factory=Clock)
    waiting: deque[tuple[Ask, float]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.engines = {name: TimedEngine(name, self.clock) for name in MODELS_MS}
        queues = {name: ModelQueue(name, engine) for name, engine in self.engines.items()}
        for name, queue in queues.items():
            queue.prior_ms = (MODELS_MS[name], 0.1) if self.is_calibrated else None
        self.driver = Driver(queues, now=self.clock)
        self.admission = Admission(Server(), WORKERS, self.clock)

    def happen(self, event: Event) -> None:
        if isinstance(event, Serve):
            for _ in range(min(event.requests, len(self.waiting))):
                self.serve()
        elif isinstance(event, Stall):
            for engine in self.engines.values():
                engine.stall_s = event.seconds
        elif isinstance(event, Rest):
            self.clock.now_s += event.seconds
        else:
            for ask in event:
                self.let_in(ask)

    def target_of(self, ask: Ask) -> float | None:
        return None if ask.names_model else self.target_ms

    def floor_ms(self, ask: Ask) -> float:
        return self.driver.floor_ms(*([Single("l")] if ask.names_model else [one.policy for one in FRONT.points]))[0]

    def let_in(self, ask: Ask) -> bool:
        try:
            limits = ask.deadline_ms, self.floor_ms(ask)
            self.admission.admit(LOAD, *limits, target_ms=self.target_of(ask), adapts=not ask.names_model)
        except JetselError:
            return False
        self.waiting.append((ask, self.clock.now_s))
        return True

    def serve(self) -> bool:
        """Do as a worker does with the next request; return whether it was answered."""
        ask, received_s = self.waiting.popleft()
        limit_ms = self.target_of(ask) or ask.deadline_ms
        pace_ms = allowed_ms(limit_ms or 1e9, self.admission.in_queue, WORKERS, self.admission.around_ms)
        self.clock.now_s += AROUND_MS[ask.image] / 1e3
        if ask.is_bad:
            self.admission.release(LOAD, None)
            return False
        target_s, deadline_s = (None if ms is None else received_s + ms / 1e3 for ms in (limit_ms, ask.deadline_ms))
        ahead = outlook(
            self.driver.queues, target_s or 1e9, self.clock.now_s, (96, 96), None, on_device=False, allowed_ms=pace_ms
        )
        policy = Single("l") if ask.names_model else FRONT.select_now(ahead).policy
        run = RequestRun(None, None, ahead, policy=policy, request=Asked(deadline_s))
        self.driver.start(run)
        self.driver.carry(run)
        models_ms = sum(ran.latency_ms for ran in run.ran)
        of_limit = None if limit_ms is None else (self.clock.now_s - received_s) * 1e3 / limit_ms
        is_answered = isinstance(run.outcome, Decision)
        self.admission.release(
            LOAD, Work(AROUND_MS[ask.image] + models_ms, models_ms, of_limit) if is_answered else None
        )
        return is_answered


ASKS = st.builds(
    Ask,
    image=st.sampled_from(["small", "small", "large"]),
    deadline_ms=st.sampled_from([None, None, 30.0, 100.0]),
    names_model=st.booleans(),
    is_bad=st.sampled_from([False, False, False, True]),
)
EVENTS = st.lists(
    st.one_of(
        st.lists(ASKS, min_size=1, max_size=8),
        st.builds(Serve, st.integers(1, 20)),
        st.builds(Stall, st.sampled_from([0.5, 3.0])),
        st.builds(Rest, st.sampled_from([0.5, 5.0, 3600.0])),
    ),
    max_size=40,
)
MONSTERS: list[Event] = [[Ask("large", names_model=True)] * 8, Serve(8)] * 4
STALLS: list[Event] = [[Ask()] * 4, Stall(3.0), Serve(4)] * 3
FIRST_RUN: list[Event] = [Stall(3.0), [Ask(names_model=True)], Serve(1)]


@settings(max_examples=50, deadline=None)
@given(
    events=EVENTS, is_calibrated=st.booleans(), target_ms=st.sampled_from([None, LIMIT_MS]), rest_s=st.floats(0, 9e4)
)
@example(MONSTERS, True, LIMIT_MS, 0.0)
@example(STALLS, False, LIMIT_MS, 86_400.0)
@example(FIRST_RUN, False, None, 0.0)
def test_an_idle_daemon_lets_in_what_fits_and_clients_with_limits_are_soon_answered_again(
    events: list[Event], is_calibrated: bool, target_ms: float | None, rest_s: float
) -> None:
    daemon = Daemon(is_calibrated, target_ms)
    for event in (*events, Serve(1000), Stall(0.0), Rest(rest_s)):
        daemon.happen(event)
    for ask in (Ask(deadline_ms=LIMIT_MS), Ask(), Ask(deadline_ms=LIMIT_MS, names_model=True)):
        floor_ms = daemon.floor_ms(ask)
        if floor_ms <= LIMIT_MS:
            assert daemon.let_in(ask)
            daemon.serve()
    answered = 0
    for _ in range(100):  # three minutes and a half of a client that asks every other second
        daemon.clock.now_s += 2.0
        answered += daemon.let_in(Ask(deadline_ms=LIMIT_MS)) and daemon.serve()
    assert answered >= 50


def test_what_cannot_be_in_time_behind_a_long_queue_is_still_refused_after_a_day_of_rest() -> None:
    daemon = Daemon(is_calibrated=True, target_ms=LIMIT_MS)
    for _ in range(60):
        daemon.let_in(Ask())
        daemon.serve()
    daemon.clock.now_s += 86_400.0
    admitted = sum(daemon.let_in(Ask()) for _ in range(200))
    # Each that is ahead takes (3 + 2) / 2 ms at the cheapest point: 38 of them 95 ms, which leaves 5 for its own.
    assert admitted == 40
