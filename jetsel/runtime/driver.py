"""The one driver of every policy: it alone knows engines, time and failure, and it alone batches.

Whoever has a thread to give calls `take` and `execute`; no thread ever waits inside. A flight that asked for a model
stands in that model's lane; whoever takes the lane next takes all that wait, up to a limit and to no deadline's harm.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.engines import EngineFailedError, Place
from jetsel.errors import DeadlineError, EngineDiedError, InternalError, JetselError, ModelUnavailableError
from jetsel.events import event
from jetsel.policies.policy import Decision, OutOfTime, Policy, Prediction, Run, best, sum_of_five
from jetsel.runtime.flight import Flight
from jetsel.runtime.lane import Lane
from jetsel.runtime.record import Record
from jetsel.wire import Criterion, Ran

log = logging.getLogger("jetsel.models")


class Batch(Struct, frozen=True, eq=False):
    """Flights whose runs of one model go out together, from a place that counts them; None where they cannot run."""

    lane: Lane
    flights: list[Flight]
    place: Place | None


class Driver:
    """Runs policies over a family's lanes. Every method may be called from any thread."""

    def __init__(
        self, lanes: Mapping[str, Lane], max_batch: int = 8, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.lanes = dict(lanes)
        self._max_batch = max_batch
        self._now = now
        self._lock = threading.Lock()
        self._waiting = 0

    def floor_ms(self, policy: Policy) -> float:
        """The least time that any path of the policy needs, by the median of recent runs; 0 where none was measured."""
        known = [self.lanes[model].percentile_ms(0.5) for model in policy.first if self.lanes[model].reason is None]
        return min((ms for ms in known if ms is not None), default=0.0)

    def begin(self, flight: Flight) -> bool:
        """Start the flight's policy; return whether it has ended already."""
        flight.steps = flight.policy(flight.photo)
        return self._advance(flight, lambda steps: next(steps))

    @property
    def is_waited_for(self) -> bool:
        """Whether a run waits for a model."""
        return self._waiting > 0

    @property
    def max_batch(self) -> int:
        """The most runs that go out together."""
        return self._max_batch

    def take(self, *, patient: bool = False) -> Batch | None:
        """Return the waiting runs of one model that may go out now, oldest lane first; None where nothing can run.

        patient: leave runs that no deadline presses until a batch is full or one has waited its time; for a
        caller with other work.
        """
        if not self._waiting:  # read without the lock: who adds a run looks for it afterwards
            return None
        with self._lock:
            due = [lane for lane in self.lanes.values() if lane.waiting and self._is_due(lane, patient)]
            if len(due) > 1:  # no lane starves behind a cheaper one
                due.sort(key=lambda lane: lane.waiting[0].waiting_since_s)
            for lane in due:
                engine = lane.engine
                if engine is not None and engine.place.enter(engine.concurrency):
                    return Batch(lane, self._gather(lane), engine.place)
            return self._abandon()

    def _is_due(self, lane: Lane, patient: bool) -> bool:
        """Whether the lane's engine serves, and its runs need not wait for others."""
        if lane.reason is not None:
            return False
        return not patient or lane.is_due(lane.batch_limit(self._max_batch), self._now())

    def _abandon(self) -> Batch | None:
        """Return the runs of one model that its engine, which is away, cannot do in time any more; they will fail."""
        now_s = self._now()
        for lane in self.lanes.values():
            if not lane.waiting or lane.reason is None:
                continue
            late = [flight for flight in lane.waiting if not lane.may_wait(flight, now_s)]
            if late:
                lane.waiting = deque(flight for flight in lane.waiting if flight not in late)
                self._waiting -= len(late)
                return Batch(lane, late, None)
        return None

    def execute(self, batch: Batch) -> list[Flight]:
        """Run the batch and move its flights on; return those that have ended."""
        lane, flights = batch.lane, batch.flights
        results: list[Prediction | JetselError]
        try:
            results = list(self._infer(lane, flights))
        except EngineDiedError as error:
            flights = self._run_again(lane, flights)
            results = [EngineDiedError(f"{lane.model} failed: {error}")] * len(flights)
        except JetselError as error:
            log.error(
                "%s failed: %s", lane.model, error, extra=event("model-failed", model=lane.model, code=error.code)
            )
            results = [ModelUnavailableError(f"{lane.model} failed: {error}")] * len(flights)
        finally:
            if batch.place is not None:
                batch.place.leave()
        return [flight for flight, result in zip(flights, results, strict=True) if self._land(flight, lane, result)]

    def _run_again(self, lane: Lane, flights: list[Flight]) -> list[Flight]:
        """Put runs that died with their engine back in front, each once and if there is time; return the others."""
        now_s = self._now()
        again = [f for f in flights if lane.model not in f.ran_again and lane.may_wait(f, now_s)]
        for flight in again:
            flight.ran_again.add(lane.model)
        with self._lock:
            lane.waiting.extendleft(reversed(again))
            self._waiting += len(again)
        return [flight for flight in flights if flight not in again]

    def finish(self, flight: Flight) -> Decision | JetselError:
        """Run one flight to its end on this thread: for evaluation, tests, and whoever has no pool of threads."""
        ended = self.begin(flight)
        while not ended:
            batch = self.take()
            if batch is None:
                raise InternalError("another thread holds every engine that this flight waits for")
            ended = flight in self.execute(batch)
        assert flight.outcome is not None
        return flight.outcome

    def _gather(self, lane: Lane) -> list[Flight]:
        """Take the lane's first flights as one batch that no deadline among them is hurt by."""
        taken: list[Flight] = []
        soonest_s: float | None = None
        most = lane.batch_limit(self._max_batch)
        while lane.waiting and len(taken) < most:
            deadline_s = lane.waiting[0].deadline_s
            if deadline_s is not None:
                soonest_s = deadline_s if soonest_s is None else min(soonest_s, deadline_s)
            if taken and soonest_s is not None:
                batch_ms = (lane.percentile_ms(0.95) or 0.0) * (len(taken) + 1)
                if self._now() + batch_ms / 1e3 > soonest_s:
                    break
            taken.append(lane.waiting.popleft())
            self._waiting -= 1
        return taken

    def _infer(self, lane: Lane, flights: list[Flight]) -> list[Prediction]:
        assert lane.engine is not None
        begun_s = self._now()
        inputs = [flight.model_input(lane.model) for flight in flights]
        began = time.perf_counter()
        output = lane.engine.infer(*inputs)
        took_ms = (time.perf_counter() - began) * 1e3
        if not math.isfinite(np.add.reduce(output.logits, axis=None)):  # one number that is not makes the sum so
            raise EngineFailedError("it answered numbers that are not finite")
        if any(flight.is_counted for flight in flights):
            with self._lock:
                lane.times_ms.append(took_ms / len(flights))
            lane.record.took(took_ms / len(flights), self._now())
        seen = []
        embeddings = output.embedding if output.embedding is not None else [None] * len(flights)
        for flight, logits, embedding in zip(flights, output.logits, embeddings, strict=True):
            prediction = predict(lane.model, logits, lane.temperature, flight.criterion, embedding)
            because = flight.asked.because if flight.asked else ""
            confidence = round(prediction.confidence, 6)
            flight.ran.append(Ran(lane.model, because, confidence, took_ms, len(flights), output.device_ms))
            flight.waiting_ms += (begun_s - flight.waiting_since_s) * 1e3
            seen.append(prediction)
        return seen

    def _land(self, flight: Flight, lane: Lane, result: Prediction | JetselError) -> bool:
        """Hand a run's result to its flight, and count the run; return whether the flight has ended with it."""
        record = lane.record if flight.is_counted and isinstance(result, Prediction) else None
        move = self._next_move(flight, lane.model, result)
        if move is None and record is not None:
            record.ran(escalated=False)
        return move is not None and self._advance(flight, move, record)

    def _next_move(self, flight: Flight, model: str, result: Prediction | JetselError) -> Callable[..., Run] | None:
        """Return how the policy goes on with what has landed; None where it waits for more, or has ended already."""
        with self._lock:
            asked = flight.asked
            if asked is None or model not in asked.models:
                return None  # the first of several has answered already
            flight.landed[model] = result
            if isinstance(result, Prediction):
                flight.predictions.append(result)
            enough = asked.until == "first" and isinstance(result, Prediction)
            if not enough and len(flight.landed) < len(asked.models):
                return None
            flight.asked = None
            landed = [flight.landed[name] for name in asked.models if name in flight.landed]
        good: list[Prediction] = []
        failed: JetselError | None = None
        for found in landed:  # mostly one, for every request: no generators
            if isinstance(found, Prediction):
                good.append(found)
            elif failed is None:
                failed = found
        if failed is None or (asked.until == "first" and good):
            return lambda steps: steps.send(tuple(good))
        return lambda steps: steps.throw(failed)

    def _advance(self, flight: Flight, move: Callable[..., Run], ran: Record | None = None) -> bool:
        """Let the policy go on until it waits for a model; return whether it has ended instead.

        ran: where the run that it goes on from is counted, before anybody can see what came of it.
        """
        while True:
            began = time.perf_counter()
            try:
                asked = move(flight.steps)
            except StopIteration as stop:
                flight.outcome = stop.value
            except OutOfTime:
                self._cut_short(flight)
            except JetselError as error:
                flight.outcome = error
            flight.choice_ms += (time.perf_counter() - began) * 1e3
            if flight.outcome is not None:
                if ran is not None:
                    ran.ran(escalated=False)
                return True
            refused = self._refuse(flight, asked)
            if refused is None:
                if ran is not None:
                    ran.ran(escalated=True)
                with self._lock:
                    flight.landed = {}
                    flight.asked = asked
                    flight.waiting_since_s = self._now()
                    for model in asked.models:
                        self.lanes[model].waiting.append(flight)
                        self._waiting += 1
                return False
            error_now: Exception = refused
            move = lambda steps, error=error_now: steps.throw(error)  # noqa: E731  # the next move, bound to this error

    def _refuse(self, flight: Flight, asked: Run) -> Exception | None:
        """Why this run cannot be had: a model is unavailable, or the time left is too short for it."""
        for model in asked.models:
            lane = self.lanes.get(model)
            refusal = lane.refusal() if lane else ModelUnavailableError(f"{model} is unavailable: it is not loaded")
            if refusal is not None:
                return refusal
        if flight.deadline_s is not None:
            needed_ms = max(self.lanes[model].percentile_ms(0.95) or 0.0 for model in asked.models)
            if self._now() + needed_ms / 1e3 > flight.deadline_s:
                return OutOfTime(f"{asked.models} need {needed_ms:.1f} ms")
        return None

    def _cut_short(self, flight: Flight) -> None:
        if flight.predictions:
            seen = best(flight.predictions)
            flight.cut_short = True
            flight.outcome = Decision(seen, f"time ran out; {seen.model} is the best that ran")
        else:
            flight.outcome = DeadlineError("too little time was left for any model: allow more in deadline_ms")


def predict(
    model: str,
    logits: NDArray[np.float32],
    temperature: float,
    criterion: Criterion,
    embedding: NDArray[np.float32] | None = None,
) -> Prediction:
    """Turn logits (classes,) into probabilities at the model's temperature, and read the criterion's confidence."""
    scaled = logits / temperature
    scaled -= np.maximum.reduce(scaled)
    probabilities = np.exp(scaled, scaled)
    total = np.add.reduce(probabilities)
    probabilities /= total
    # The largest scaled logit is 0, and its exponential 1.
    confidence = float(1 / total) if criterion == "top1" else sum_of_five(probabilities)
    return Prediction(model, probabilities, confidence, embedding)
