"""What tests of the driver share: engines that compute by a table, a clock that is set, and a cascade."""

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError, JetselError
from jetsel.engines import CallerLimiter, EngineFailedError, Output
from jetsel.policies import Decision, Evidence, Prediction, Run
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.policy import Policy, Steps
from jetsel.runtime import Batch, Driver, ModelQueue, RequestRun
from jetsel.runtime.model_times import SORT_EVERY
from jetsel.wire import Classify


class TableEngine:
    """Answers logits that say class 0 by the margin it was given; counts its batches."""

    def __init__(self, name: str, margin: float, concurrency: int = 1) -> None:
        self.name = name
        self.concurrency = concurrency
        self.caller_limiter: CallerLimiter | None = CallerLimiter()
        self.is_stale = False
        self.max_batch: int | None = None
        self.unavailable: str | None = None
        self.is_restarting = False
        self.restart_s = 0.0
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


PIXELS = np.zeros((1, 3, 2, 2), np.float32)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


ODD = np.log(0.9 / 0.1)  # the margin at which two classes stand 0.9 to 0.1


def finish(driver: Driver, run: RequestRun) -> Decision | Exception:
    """Run one policy to its end on this thread."""
    driver.start(run)
    driver.continue_runs(run)
    assert run.outcome is not None
    return run.outcome


def have_run(queue: ModelQueue, times_ms: list[float], now_s: float) -> None:
    """Let runs of this duration have just ended."""
    for took_ms in times_ms * SORT_EVERY:
        queue.times.add_batch(took_ms, 1, now_s)


class Asked:
    """A request of a test. See Request."""

    is_counted, has_promise, photograph, file = True, False, None, None

    def __init__(self, deadline_s: float | None = None, pixels: NDArray[np.float32] = PIXELS) -> None:
        self.message, self.deadline_s, self.pixels = Classify(1, ""), deadline_s, pixels

    def model_input(self, _: str) -> NDArray[np.float32]:
        return self.pixels


def request_run(policy: Policy, deadline_s: float | None = None) -> RequestRun:
    return RequestRun(None, None, policy=policy, request=Asked(deadline_s))


class Duplicated:
    """Asks for models together and answers with the last that it is told of."""

    name, features = "duplicated", ()

    def __init__(self, models: tuple[str, ...], until: str) -> None:
        self.models, self.first_models, self.until = models, models[:1], until

    def __call__(self, photo: Evidence) -> Steps:
        seen: tuple[Prediction, ...] = yield Run(self.models, "together", until=self.until)  # type: ignore[arg-type]
        return Decision(seen[-1], " and ".join(one.model for one in seen))


CASCADE = Cascade("cascade", rungs_of(["s", "m", "l"], [0.8, 0.7]))


def go_away(engine: TableEngine, *, returns: bool = True) -> None:
    """What an engine looks like whose process has just died."""
    engine.failure = EngineDiedError("the host died") if returns else EngineFailedError("the host is given up")
    engine.unavailable = str(engine.failure)
    engine.is_restarting, engine.restart_s = returns, 1.0


def come_back(engine: TableEngine) -> None:
    engine.failure, engine.unavailable, engine.is_restarting = None, None, False


def queue(driver: Driver, *requests: RequestRun) -> None:
    """Start the requests, which then wait for their models as if the engines were busy."""
    for request in requests:
        driver.start(request)
        driver.waiting.enqueue(request, models_of(request))


def models_of(request: RequestRun) -> tuple[str, ...]:
    """The models that it asks for now."""
    return request.pending.models


def taken(driver: Driver) -> Batch:
    """The next batch, which must be there."""
    batch = driver.waiting.next_batch()
    assert batch is not None
    return batch


def died_while_running(driver: Driver, engine: TableEngine, request: RequestRun) -> list[RequestRun]:
    """Start the request, let its engine die under the run, and return what goes on with that."""
    queue(driver, request)
    batch = taken(driver)
    go_away(engine)
    return driver.execute(batch)
