"""The backends by name, each created for the first model that uses it; and engines with a trained last layer."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jetsel.base.errors import ConfigError
from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Head, Weights
from jetsel.engines.base import Backend, Engine, EngineFailedError, Output
from jetsel.wire.status import HostStatus

Factory = Callable[[HostSettings, Callable[[], None]], Backend]

BACKENDS = {
    "onnxruntime": "jetsel.engines.onnx:OnnxBackend",
    "onnxruntime-hosted": "jetsel.engines.hosted:onnxruntime_hosted",
    "tensorrt": "jetsel.engines.hosted:tensorrt",
}  # tests register more


class Backends:
    """Creates each backend for the first model that uses it, and keeps it for all later ones. Any thread may call."""

    def __init__(self, settings: HostSettings | None = None, changed: Callable[[], None] = lambda: None) -> None:
        """Store the settings of the engine hosts, None if no model runs in one.

        changed: called, from a backend's thread, when an engine becomes available or unavailable.
        """
        self._settings = settings or HostSettings(engines="/nonexistent")
        self._lock = threading.Lock()
        self._backends: dict[str, Backend] = {}
        self.changed = changed

    def open(self, backend: str, weights: Weights, *, concurrency: int, threads: int) -> Engine:
        """Load a model, see Backend.open, and its head if it has one; raises ConfigError for an unknown backend."""
        engine = self.get(backend).open(weights.backbone, concurrency=concurrency, threads=threads)
        return with_head(engine, weights)

    def get(self, backend: str) -> Backend:
        """Return the backend of this name; raises ConfigError if there is none."""
        if backend not in BACKENDS:
            raise ConfigError(f"models.backend: {backend!r} is not a backend; known here: {', '.join(BACKENDS)}")
        with self._lock:
            if backend not in self._backends:
                module, _, attribute = BACKENDS[backend].partition(":")
                factory = cast(Factory, getattr(importlib.import_module(module), attribute))
                self._backends[backend] = factory(self._settings, self.changed)
            return self._backends[backend]

    def waiting_threads(self) -> frozenset[int]:
        """Return the identifiers (threading.get_ident) of the threads that wait for a reply of an engine host.

        The watchdog does not count such a thread as hanging, because the host's supervisor limits the wait.
        """
        return frozenset().union(*(backend.waiting_threads() for backend in list(self._backends.values())))

    def hosts(self) -> list[HostStatus]:
        """Return the state of the engine host of each backend in use that has one."""
        backends = list(self._backends.items())  # without the lock, which may be held long while a backend is created
        reports = [(name, backend.report()) for name, backend in backends]
        return [structs.replace(report, backend=name) for name, report in reports if report is not None]

    def close(self) -> None:
        """Close every backend, after its engines have been closed."""
        with self._lock:
            backends, self._backends = list(self._backends.values()), {}
        for backend in backends:
            backend.close()


class HeadedEngine:
    """Runs a model's backbone on its backend, and its head (trained last layer) here; the rest is the backbone's."""

    def __init__(self, backbone: Engine, head: Head) -> None:
        self.concurrency, self.caller_limiter = backbone.concurrency, backbone.caller_limiter  # each request reads them
        self._backbone, self._head = backbone, head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backbone, name)

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """Return the head's logits for the backbone's embedding; see Engine.infer."""
        output = self._backbone.infer(*parts)
        if output.embedding is None or output.embedding.shape[1:] != self._head.weights.shape[:1]:
            raise EngineFailedError(f"{self.name}: its backbone gives no embedding for this head: train the head again")
        return output._replace(logits=output.embedding @ self._head.weights + self._head.bias)


def with_head(engine: Engine, weights: Weights) -> Engine:
    """Return the engine, with the model's head behind it if there is one; EngineFailedError if that cannot be read."""
    if weights.head is None:
        return engine
    try:
        return cast(Engine, HeadedEngine(engine, Head.read(weights.head.path)))
    except (OSError, ValueError, LookupError) as error:
        engine.close()
        message = f"{weights.name}: {weights.head.path}: is not a head: {error}; train it again"
        raise EngineFailedError(message) from error
