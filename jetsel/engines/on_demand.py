"""An engine that is unloaded while it is idle; a request loads it again, while others are served."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError, JetselError
from jetsel.base.events import event
from jetsel.engines.base import CallerLimiter, Engine, EngineFailedError, Output

log = logging.getLogger("jetsel.engines")

RETRY_S, LONGEST_RETRY_S = 5.0, 600.0  # pause after a failed load, doubled each time: it may have ended a host


@dataclass
class _LoadFailures:
    """Failed loads since the last success. reason: of the last; None if none failed. retry_s: earliest next load."""

    reason: str | None = None
    retry_s: float = 0.0
    pause_s: float = RETRY_S  # until a retry, after the next failure

    def add(self, reason: str, now_s: float) -> None:
        self.reason, self.retry_s = reason, now_s + self.pause_s
        self.pause_s = min(2 * self.pause_s, LONGEST_RETRY_S)


class OnDemandEngine:
    """An engine that `unload` frees, and the next request loads again. Any thread may call.

    A load takes longer than a run (Ogden and Guo, MODI, section 4.1), so latency forecasts include `load_due_ms`. No
    caller waits in `infer` for a load: while the engine is unloaded, its limiter admits nobody and starts the load.
    """

    def __init__(
        self,
        load: Callable[[], Engine],
        on_load_end: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
        *,
        try_batches: Callable[[Engine], bool] = lambda _: True,
    ) -> None:
        """Call `load`, which returns the engine; raises what it raises.

        on_load_end: called after each later load, in its thread. now: clock in seconds. try_batches: called once with
        the loaded engine; returns whether it is faster in batches.
        """
        self._load, self._on_load_end, self._now = load, on_load_end, now
        self._lock = threading.Lock()
        self._closed_limiter = _ClosedLimiter(self.request_load)
        self._callers = 0
        self._load_start_s: float | None = None  # start of the current load
        self._failures = _LoadFailures()
        self._is_closed = False
        start_s = now()
        self._engine = load()
        self.is_loaded, self.loaded_s = True, now()
        self.load_ms = (self.loaded_s - start_s) * 1e3  # of the last load
        self.gains_by_batches = try_batches(self._engine)
        self.name = self._engine.name

    # The interface of Engine.

    @property
    def concurrency(self) -> int:
        return self._engine.concurrency

    @property
    def caller_limiter(self) -> CallerLimiter | None:
        return self._engine.caller_limiter if self.is_loaded else self._closed_limiter

    @property
    def max_batch(self) -> int | None:
        return self._engine.max_batch

    @property
    def unavailable(self) -> str | None:
        """Why the engine cannot run; None also while it is unloaded and a request would load it."""
        return self._engine.unavailable if self.is_loaded else self._failures.reason

    @property
    def is_restarting(self) -> bool:
        return self.is_loaded and self._engine.is_restarting

    @property
    def is_stale(self) -> bool:
        """Whether the model's file was replaced after its load; False while unloaded, as the next load reads it."""
        return self.is_loaded and self._engine.is_stale

    @property
    def restart_s(self) -> float:
        """Seconds that the last restart took; while the engine is unloaded, the predicted `load_due_ms` in seconds."""
        return self._engine.restart_s if self.is_loaded else self.load_due_ms / 1e3

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """See Engine.infer. If it was just unloaded, raises EngineDiedError: the driver queues the run again."""
        with self._lock:
            if not self.is_loaded:
                reason = self._failures.reason
                raise (EngineDiedError if reason is None else EngineFailedError)(reason or "unloaded")
            engine = self._engine
            self._callers += 1
        try:
            return engine.infer(*parts)
        finally:
            with self._lock:
                self._callers -= 1

    def close(self) -> None:
        with self._lock:
            engine = self._engine if self.is_loaded else None
            self.is_loaded, self._is_closed, self._failures.reason = False, True, f"{self.name}: it is closed"
        if engine is not None:
            engine.close()

    @property
    def load_due_ms(self) -> float:
        """Predicted ms until it is loaded: the last load's time, less that since a current load began; 0 if loaded."""
        start_s = self._load_start_s
        if self.is_loaded:
            return 0.0
        return self.load_ms if start_s is None else max(0.0, self.load_ms - (self._now() - start_s) * 1e3)

    def unload(self) -> bool:
        """Free the engine, unless it is running or unavailable; return whether it was freed."""
        with self._lock:
            if self._callers or not self.is_loaded or self._engine.unavailable is not None:
                return False
            engine, self.is_loaded = self._engine, False
        engine.close()
        return True

    def request_load(self) -> None:
        """Start a thread that loads the engine, unless it is loaded, loading or closed, or it failed recently."""
        if self.is_loaded:
            return
        with self._lock:
            is_due = self._load_start_s is None and self._now() >= self._failures.retry_s
            if is_due and not (self.is_loaded or self._is_closed):
                threading.Thread(target=self._load_in_thread, name=f"loading-{self.name}", daemon=True).start()
                self._load_start_s = self._now()

    def _load_in_thread(self) -> None:
        """Load the engine, and note the result; an unexpected exception goes on to the log."""
        start_s, engine, failure = self._now(), None, "a defect ended its load: see the log"
        took_s = 0.0
        try:
            engine = self._load()
            took_s = self._now() - start_s
        except JetselError as error:
            failure = str(error)
        except MemoryError:
            failure = "no memory is left to load it"
        finally:
            self._finish_load(engine, took_s, failure)
        self._on_load_end()

    def _finish_load(self, engine: Engine | None, took_s: float, failure: str) -> None:
        """Note and log the result of a load. engine: None if the load failed, for the reason `failure`."""
        with self._lock:
            ended_s, self._load_start_s, is_open = self._now(), None, not self._is_closed
            if engine is not None and is_open:
                self._engine, self._failures = engine, _LoadFailures()
                self.load_ms, self.loaded_s, self.is_loaded = took_s * 1e3, ended_s, True
            elif is_open:
                self._failures.add(failure, ended_s)
        if engine is None:
            fields = event("model-unavailable", model=self.name)
            log.error("model %s cannot be loaded: %s", self.name, failure, extra=fields)
        elif is_open:
            fields = event("model-loaded", model=self.name, took_s=took_s)
            log.info("model %s is loaded, in %.0f ms", self.name, self.load_ms, extra=fields)
        else:
            engine.close()


class _ClosedLimiter(CallerLimiter):
    """The limiter of an unloaded engine: it admits no caller, and each attempt starts the load."""

    def __init__(self, request_load: Callable[[], None]) -> None:
        super().__init__()
        self._request_load = request_load

    def enter(self, _limit: int) -> bool:
        self._request_load()
        return False
