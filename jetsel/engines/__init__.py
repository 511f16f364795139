"""Backends that run one model each: a table of import strings, so that nothing heavy loads until it is chosen."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import cast

from jetsel.engines.base import Engine, EngineFactory, EngineFailedError, Output, warm_up
from jetsel.errors import ConfigError

# From 1.31 on ONNX Runtime reports to its maker over the network, unless this stands before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

BACKENDS = {
    "onnxruntime": "jetsel.engines.onnx:OnnxEngine",
}  # tests register their own

__all__ = ["BACKENDS", "Engine", "EngineFailedError", "Output", "open_engine", "warm_up"]


def open_engine(backend: str, name: str, path: Path, *, concurrency: int, threads: int) -> Engine:
    """Load the model at `path` on the named backend.

    concurrency: callers served at a time; threads: of one inference.
    Raises ConfigError for an unknown backend and EngineFailedError where the model does not load.
    """
    if backend not in BACKENDS:
        raise ConfigError(f"models.backend: {backend!r} is no backend; known here: {', '.join(BACKENDS)}")
    module, _, attribute = BACKENDS[backend].partition(":")
    factory = cast(EngineFactory, getattr(importlib.import_module(module), attribute))
    return factory(name, path, concurrency=concurrency, threads=threads)
