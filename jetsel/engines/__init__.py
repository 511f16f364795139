"""Backends that run models: a table of import strings, so that a backend is imported only when it is used."""

from __future__ import annotations

import os

from jetsel.engines.backends import BACKENDS, Backends
from jetsel.engines.base import Backend, CallerLimiter, Engine, EngineFailedError, Output, gains_by_batches, warm_up
from jetsel.engines.on_demand import OnDemandEngine

# From 1.31 on ONNX Runtime sends telemetry to its maker, unless this is set before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "BACKENDS",
    "Backend",
    "Backends",
    "CallerLimiter",
    "Engine",
    "EngineFailedError",
    "OnDemandEngine",
    "Output",
    "gains_by_batches",
    "warm_up",
]
