"""ONNX Runtime in this process: the backend for machines without TensorRT."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import InferenceSession

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import CallerLimiter, EngineFailedError, Output

_OUTPUTS = ["logits", "embedding"]
_NO_MEMORY = ("Failed to allocate memory", "bad_alloc")
"""ONNX Runtime's messages if memory runs out: in its arena (core/framework/bfc_arena.cc), or in the C++ library."""

_TOO_NEW = re.compile(r"(IR version|Opset):? (\d+)\b.*(?:version: |till opset )(\d+)", re.DOTALL)
"""ONNX Runtime's message for a file that is too new (core/graph/model.cc, core/graph/model_load_utils.h)."""


class OnnxBackend:
    """Runs models in this process. Engines of the same file share one session, and so one copy of its weights."""

    def __init__(self, _settings: HostSettings, _changed: Callable[[], None]) -> None:
        # By path, hash and number of threads, for as long as an engine uses it.
        self._sessions: WeakValueDictionary[tuple[Path, str, int], InferenceSession] = WeakValueDictionary()

    def open(self, weights: Weights, *, concurrency: int, threads: int) -> OnnxEngine:
        """Load a model, see Backend.open; engines of the same file and number of threads share a session."""
        key = weights.path, weights.sha256, threads
        session = self._sessions.get(key)
        engine = OnnxEngine(weights.name, weights.path, concurrency=concurrency, threads=threads, session=session)
        self._sessions[key] = engine.session
        return engine

    def waiting_threads(self) -> frozenset[int]:
        return frozenset()  # no other process is waited for

    def report(self) -> None:
        """Return None: there is no engine host."""

    def close(self) -> None:
        """Do nothing: a session ends with the last engine that uses it."""


class OnnxEngine:
    """One model in an ONNX Runtime session, which any number of threads may run at a time."""

    unavailable = None
    is_restarting = False
    is_stale = False
    restart_s = 0.0

    def __init__(
        self, name: str, path: Path, *, concurrency: int, threads: int, session: InferenceSession | None = None
    ) -> None:
        """Use `session`, which must be of this file and number of threads; None: load the file into a new one."""
        self.name = name
        if session is None:
            session = _load_session(name, path, threads)
        self.concurrency = concurrency
        self.caller_limiter: CallerLimiter | None = None
        outputs = {output.name for output in session.get_outputs()}
        self._outputs = [output for output in _OUTPUTS if output in outputs]
        self._input = session.get_inputs()[0].name
        batch_shape = session.get_inputs()[0].shape[:1]
        self.max_batch = batch_shape[0] if batch_shape and isinstance(batch_shape[0], int) else None
        self.session: InferenceSession | None = session

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """See Engine.infer. Also raises MemoryError if ONNX Runtime gets no memory for this batch."""
        session = self.session  # a local reference keeps the session alive if another thread closes the engine
        if session is None:
            raise EngineFailedError(f"{self.name}: it is closed")
        batch = parts[0] if len(parts) == 1 else np.concatenate(parts)
        try:
            outputs = session.run(self._outputs, {self._input: batch})
        except Exception as error:  # ONNX Runtime's exceptions share no other base
            if any(words in str(error) for words in _NO_MEMORY):
                raise MemoryError(f"{self.name}: ONNX Runtime got no memory for {len(batch)} images") from error
            raise EngineFailedError(f"{self.name}: inference failed: {explain_error(error)}") from error
        return Output(outputs[0], outputs[1] if len(outputs) > 1 else None, None)

    def close(self) -> None:
        """Drop the session; its memory is freed when the last caller has returned."""
        self.session = None


@cache
def _has_vnni() -> bool:
    """Return whether the processor sums 8-bit products in 32 bits; ONNX Runtime's own check misses AMD's."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return False
    return not flags.isdisjoint({"avx512_vnni", "avx_vnni", "amx_int8"})


def _load_session(name: str, path: Path, threads: int) -> InferenceSession:
    """Load an ONNX file; raises EngineFailedError if that fails, or if it has no output named logits."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Idle threads that spin would take the cores from the decoding of the next image.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _has_vnni():  # sums of two 8-bit products may exceed 16 bits: be exact, though slower
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no other base
        raise EngineFailedError(f"{name}: ONNX Runtime does not load {path.name}: {explain_error(error)}") from error
    if "logits" not in {output.name for output in session.get_outputs()}:
        raise EngineFailedError(f"{name}: {path.name} has no output named logits; export it again")
    return session


def explain_error(error: Exception) -> str:
    """Return the first line of ONNX Runtime's error, or the repair if a file is too new for it."""
    if (match := _TOO_NEW.search(str(error))) is not None:
        kind, version, newest = match.groups()
        repair = (
            f"export it with opset_version={newest}" if kind == "Opset" else f"set its ir_version to {newest} with onnx"
        )
        return f"its {kind} is {version}, and ONNX Runtime {onnxruntime.__version__} reads up to {newest}: {repair}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
