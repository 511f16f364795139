"""Models that run in the engine host, from the daemon's side."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError, JetselError
from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import CallerLimiter, EngineFailedError, Output
from jetsel.engines.building import plans
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.process import HostProcess, HostStart
from jetsel.engines.hosting.residents import RULES, AnotherHostError, Rules
from jetsel.engines.hosting.running import HostedModel
from jetsel.engines.hosting.supervisor import Supervisor
from jetsel.wire.status import HostStatus

RUN_LIMIT_S = 2.0  # least limit of a run, after which the host counts as hung
RUN_LIMIT_TIMES = 20  # limit as a multiple of the usual time: low power modes make runs two to four times as long
RECENT = 32  # runs, about, in the running mean of the usual time
UNLOAD_S = 10.0


class HostedBackend:
    """The backend whose models run in one engine host, a separate process, one at a time."""

    def __init__(self, backend: str, settings: HostSettings, changed: Callable[[], None], rules: Rules = RULES) -> None:
        self._backend = backend
        self._settings = settings
        self._hello_s = rules.hello_s
        self.model_numbers = itertools.count(1)  # each engine takes one, by which the host knows its model
        self.caller_limiter = CallerLimiter()  # counts the callers of all its models together
        self.supervisor = Supervisor(self._start, changed, rules)

    def open(self, weights: Weights, *, concurrency: int, threads: int) -> HostedEngine:
        """Load a model into the host, and start the host if none runs; see Backend.open.

        Two callers at most: one runs, and one prepares its input meanwhile. If `concurrency` is several, one caller is
        left for models outside the host, in case the host hangs.
        """
        self.supervisor.start()
        engine = HostedEngine(self, weights, min(2, max(concurrency - 1, 1)), threads)
        self.supervisor.load(engine)
        return engine

    def close(self) -> None:
        self.supervisor.close()

    def waiting_threads(self) -> frozenset[int]:
        return frozenset(self.supervisor.waiting_threads)

    def report(self) -> HostStatus:
        return self.supervisor.report()

    def load_request(self, weights: Weights, threads: int) -> dict[str, Any]:
        """Return the request to load the model's current file or engine; raises EngineFailedError, EngineDiedError."""
        if self._backend != "tensorrt":
            return {**plans.load_request(weights, weights.path, weights.sha256), "threads": threads}
        process = self.supervisor.process
        if process is None:
            raise AnotherHostError("the engine host died")
        return plans.find(self._settings, weights, process.about).to_load(weights)

    def _start(self) -> HostStart:
        interpreter = self._settings.interpreter or interpreters.default(self._backend)
        return HostStart(interpreter, self._backend, int(self._settings.reserve_mb * 1e6), self._hello_s)


tensorrt = functools.partial(HostedBackend, "tensorrt")
onnxruntime_hosted = functools.partial(HostedBackend, "onnxruntime")


class HostedEngine:
    """One model in the engine host. The supervisor loads it again into each restarted host."""

    def __init__(self, backend: HostedBackend, weights: Weights, concurrency: int, threads: int) -> None:
        self.name = weights.name
        self.concurrency = concurrency
        self.caller_limiter: CallerLimiter | None = backend.caller_limiter
        self.max_batch: int | None = None
        self.cost_bytes: int | None = None  # memory that its load took; None if unknown
        self._number = next(backend.model_numbers)  # by which the host knows it
        self._weights = weights
        self._supervisor = backend.supervisor
        self._current_request = functools.partial(backend.load_request, weights, threads)
        self._loaded_request: Mapping[str, Any] = {}  # of the last load
        self._hosted: tuple[HostProcess, HostedModel] | None = None  # the last host that loaded it
        self._left_out: str | None = None  # why no host will load it again
        self._closed = False
        self._usual_s: float | None = None  # running mean of a run's time

    def load_request(self) -> dict[str, Any]:
        """Return the request to load the model's current file (docs/engine-host.md), and keep it for `is_stale`."""
        self._loaded_request = self._current_request()
        return {"model": self._number, **self._loaded_request}

    def on_loaded(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Take the model's limits and first run time from the host's reply to the load."""
        self.max_batch, self.cost_bytes = reply["max_batch"], reply["cost_bytes"]
        if self._usual_s is None:
            self._usual_s = reply["run_ms"] / 1e3
        self._hosted = process, HostedModel(self._number, self._weights, reply["max_batch"], reply["embedding_width"])

    def unload(self) -> None:
        """Unload the model, if the host that holds it still runs."""
        process = self._process
        if process is not None and process is self._supervisor.process:
            with contextlib.suppress(EngineDiedError):  # the host has ended, and the model with it
                self._supervisor.ask(process, "unload", {"model": self._number}, UNLOAD_S, f"unloading {self.name}")

    def on_left_out(self, reason: str) -> None:
        self._left_out, self._hosted = reason, None

    @property
    def unavailable(self) -> str | None:
        """Why the model cannot run: it was left out, or the running host has not loaded it; None if it can."""
        if self._left_out is not None or self._process is self._supervisor.process:
            return self._left_out
        return self._supervisor.down_reason or "the engine host is loading it again"

    @property
    def is_restarting(self) -> bool:
        """Whether a new host is starting, or has not loaded the model yet."""
        supervisor = self._supervisor
        return self._left_out is None and (supervisor.is_restarting or supervisor.process not in (None, self._process))

    @property
    def restart_s(self) -> float:
        return self._supervisor.restart_s

    @property
    def is_stale(self) -> bool:
        """Whether the model's file was replaced, or its TensorRT engine built again, since its load."""
        try:
            return self._current_request().get("sha256") != self._loaded_request.get("sha256")
        except JetselError:
            return False  # keep what runs if the new file cannot be read

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """See Engine.infer. A host that exceeds the limit is killed; the parts are copied once, into shared memory."""
        if self._closed:
            raise EngineFailedError(f"{self.name}: it is closed")
        hosted, reason = self._hosted, self.unavailable
        if hosted is None or reason is not None:
            raise (EngineDiedError if self.is_restarting else EngineFailedError)(f"{self.name}: {reason}")
        process, model = hosted
        usual_s = self._usual_s or 0.0
        limit_s = max(RUN_LIMIT_S, RUN_LIMIT_TIMES * usual_s)

        def ask(request: Mapping[str, Any]) -> dict[str, Any]:
            return self._supervisor.ask(process, "infer", request, limit_s, f"running {self.name}")

        output, run_s = model.run(process.memory, ask, *parts)
        self._usual_s = usual_s + (run_s - usual_s) / RECENT
        return output

    def close(self) -> None:
        """Unload the model from the host after its current run; restarted hosts no longer load it."""
        self._closed = True
        self._supervisor.residents.forget(self)
        self.unload()

    @property
    def _process(self) -> HostProcess | None:
        """The host that has loaded the model, which may have ended; None if none has."""
        return None if self._hosted is None else self._hosted[0]
