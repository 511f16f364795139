"""Models that run in the engine host: the daemon's side of each."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.config import Host, engines_folder
from jetsel.engines.base import EngineFailedError, Output, Place
from jetsel.engines.building import plans
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.link import LinkBrokenError
from jetsel.engines.hosting.process import HostProcess, Start
from jetsel.engines.hosting.rules import RULES, Rules
from jetsel.engines.hosting.supervisor import AnotherHostError, Supervisor
from jetsel.engines.report import HostReport
from jetsel.errors import EngineDiedError, JetselError
from jetsel.weights import Weights

RUN_LIMIT_S = 2.0
RUN_LIMIT_TIMES = 20  # of the 99th percentile: power modes and throttling make runs two to four times as long
RECENT = 256  # runs from which that is told
UNLOAD_S = 10.0
_ALIGNED_BYTES = 256


class HostedBackend:
    """One engine host, and the models that run in it one at a time."""

    def __init__(self, backend: str, host: Host, changed: Callable[[], None], rules: Rules = RULES) -> None:
        self._backend = backend
        self._host = host
        self._hello_s = rules.hello_s
        self._interpreter: str | None = None
        self._keys = itertools.count(1)
        self._place = Place()
        self.supervisor = Supervisor(self._start, changed, rules)

    def open(self, weights: Weights, *, concurrency: int, threads: int) -> HostedEngine:
        """Load a model; see Backend.open.

        The host runs one model at a time. A second caller may stand ready, its input in place, unless it is the last of
        `concurrency`: models elsewhere are served too while the host hangs.
        """
        self.supervisor.start()
        key, callers = next(self._keys), min(2, max(concurrency - 1, 1))
        find = functools.partial(self._file, weights, threads)
        engine = HostedEngine(key, weights, self.supervisor, find, self._place, callers)
        self.supervisor.load(engine)
        return engine

    def close(self) -> None:
        """Have the host leave."""
        self.supervisor.close()

    def asking(self) -> frozenset[int]:
        """See Backend.asking."""
        return frozenset(self.supervisor.asking)

    def report(self) -> HostReport:
        """See Backend.report."""
        return self.supervisor.report()

    def _file(self, weights: Weights, threads: int) -> dict[str, Any]:
        """Return which file holds the model now, and what it was made for; EngineFailedError, EngineDiedError."""
        if self._backend != "tensorrt":
            return {"path": str(weights.path), "sha256": weights.sha256, "threads": threads}
        process = self.supervisor.process
        if process is None:
            raise AnotherHostError("the engine host died")
        return plans.find(engines_folder(self._host), weights, self._host, process.about).to_load()

    def _start(self) -> Start:
        if self._interpreter is None:
            # One that was named is not probed: that would import TensorRT twice, and the host says what is missing.
            self._interpreter = self._host.interpreter or str(interpreters.choose(self._backend).path)
        return Start(
            interpreter=self._interpreter,
            backend=self._backend,
            environment=interpreters.environment(os.environ),
            reserve_bytes=int(self._host.reserve_mb * 1e6),
            hello_s=self._hello_s,
        )


tensorrt = functools.partial(HostedBackend, "tensorrt")
onnxruntime_hosted = functools.partial(HostedBackend, "onnxruntime")


class HostedEngine:
    """One model in the host. It is loaded again, by its request, in every host that follows the first."""

    def __init__(
        self,
        key: int,
        weights: Weights,
        supervisor: Supervisor,
        find: Callable[[], Mapping[str, Any]],
        place: Place,
        concurrency: int,
    ) -> None:
        self.name = weights.name
        self.concurrency = concurrency
        self.place = place
        self.max_batch: int | None = None
        self._key = key
        self._weights = weights
        self._supervisor = supervisor
        self._find = find
        self._file: Mapping[str, Any] = {}
        self._lock = threading.Lock()
        self._home: HostProcess | None = None
        self._loaded: Mapping[str, Any] = {}
        self._refused: str | None = None
        self._closed = False
        self._times_s: deque[float] = deque(maxlen=RECENT)
        self._runs = 0
        self._limit_s = RUN_LIMIT_S

    # What the supervisor calls.

    def request(self) -> dict[str, Any]:
        """What the host is asked to load, as it stands now; see docs/engine-host.md."""
        weights = self._weights
        self._file = self._find()
        return {
            "model": self._key,
            "name": self.name,
            "classes": weights.classes,
            "input_px": [weights.height_px, weights.width_px],
            **self._file,
        }

    def moved_in(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Take note that this host has loaded it."""
        self.max_batch = reply.get("max_batch")
        self._loaded = reply
        if not self._times_s:
            self._took(float(reply.get("run_ms") or 0.0) / 1e3)
        self._home = process

    def move_out(self) -> None:
        """Have the host unload it, if it is there still."""
        process = self._home
        if process is None or process is not self._supervisor.process:
            return
        with contextlib.suppress(EngineDiedError):  # gone with all that it held
            self._supervisor.ask(process, "unload", {"model": self._key}, UNLOAD_S, f"unloading {self.name}")

    def refused(self, reason: str) -> None:
        """Take note that it is not loaded any more, for good."""
        self._refused, self._home = reason, None

    # What the driver calls.

    @property
    def unavailable(self) -> str | None:
        """See Engine.unavailable."""
        if self._refused is not None or self._home is self._supervisor.process:
            return self._refused
        return self._supervisor.down or "the engine host is loading it again"

    @property
    def is_returning(self) -> bool:
        """See Engine.is_returning."""
        supervisor = self._supervisor
        return self._refused is None and (supervisor.is_returning or supervisor.process not in (None, self._home))

    @property
    def returns_within_s(self) -> float:
        """See Engine.returns_within_s."""
        return self._supervisor.returns_within_s

    @property
    def cost_bytes(self) -> int | None:
        """The memory that loading it took, as the host measured it; None where it could not."""
        return self._loaded.get("cost_bytes")

    @property
    def is_stale(self) -> bool:
        """See Engine.is_stale: an engine may have been built again."""
        try:
            return self._find().get("sha256") != self._file.get("sha256")
        except JetselError:
            return False  # what runs is better than what is gone

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """Run the model; see Engine.infer. The parts are copied once, into the memory shared with the host."""
        if self._closed:
            raise EngineFailedError(f"{self.name}: it was closed")
        process, reason = self._home, self.unavailable
        if process is None or reason is not None:
            raise (
                EngineDiedError(f"{self.name}: {reason}")
                if self.is_returning
                else EngineFailedError(f"{self.name}: {reason}")
            )
        count = self._count(parts)
        shape = (count, 3, self._weights.height_px, self._weights.width_px)
        input_bytes = _aligned(4 * count * 3 * self._weights.height_px * self._weights.width_px)
        output_bytes = 4 * count * (self._loaded["classes"] + (self._loaded["embedding_width"] or 0))
        try:
            region = process.memory.take(input_bytes + output_bytes)
        except LinkBrokenError:
            raise EngineDiedError(f"{self.name}: the engine host died: send again") from None
        except OSError as error:
            raise EngineFailedError(f"{self.name}: no memory to share with the engine host: {error.strerror}") from None
        try:
            batch = region.view(region.offset, shape)
            np.concatenate(parts, out=batch)
            output_at = region.offset + input_bytes
            # What the host does not write must never look like an answer.
            region.view(output_at, (output_bytes // 4,)).fill(np.nan)
            request = {
                "model": self._key,
                "input": {"offset": region.offset, "shape": shape},
                "output": {"offset": output_at, "bytes": output_bytes},
            }
            reply = self._supervisor.ask(process, "infer", request, self._limit_s, f"running {self.name}")
            if not reply.get("ok"):
                raise EngineFailedError(f"{self.name}: {reply.get('message')}")
            self._took(float(reply.get("wall_ms") or 0.0) / 1e3)  # without the time that it waited for others
            outputs = [self._copy(region.view, reply.get(name), count, name) for name in ("logits", "embedding")]
        finally:
            process.memory.give_back(region)
        if outputs[0] is None:
            raise EngineFailedError(f"{self.name}: the engine host answered without logits")
        return Output(outputs[0], outputs[1], reply.get("device_ms"))

    def close(self) -> None:
        """Free it in the host too, once the run that is under way has ended."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._supervisor.forget(self)
        self.move_out()

    def _count(self, parts: tuple[NDArray[np.float32], ...]) -> int:
        """How many images the parts hold; raises EngineFailedError where they are not such images."""
        expected = (3, self._weights.height_px, self._weights.width_px)
        for part in parts:
            if part.ndim != 4 or part.shape[1:] != expected or part.dtype != np.float32:
                raise EngineFailedError(
                    f"{self.name}: inference failed: {part.dtype} of shape {part.shape} where float32 (n, 3, "
                    f"{expected[1]}, {expected[2]}) was due"
                )
        count = sum(len(part) for part in parts)
        if self.max_batch is not None and count > self.max_batch:
            raise EngineFailedError(f"{self.name}: {count} images at once; it takes {self.max_batch}")
        return count

    def _copy(
        self, view: Callable[[int, tuple[int, int]], NDArray[np.float32]], said: Any, count: int, name: str
    ) -> NDArray[np.float32] | None:
        """Return one output as an array of the caller's own; None where there is none."""
        if said is None:
            return None
        try:
            rows, width = said["shape"]
            if rows != count or width != self._loaded["classes" if name == "logits" else "embedding_width"]:
                raise ValueError
            return np.array(view(said["offset"], (rows, width)))
        except (KeyError, TypeError, ValueError):
            raise EngineFailedError(f"{self.name}: the engine host's answer points nowhere: {said!r}") from None

    def _took(self, run_s: float) -> None:
        """Count a run's time in, and now and then read from the recent ones how long a run may take."""
        self._times_s.append(run_s)
        if self._runs % (RECENT // 8) == 0:
            recent = sorted(self._times_s)
            p99_s = recent[min(int(0.99 * len(recent)), len(recent) - 1)]
            self._limit_s = max(RUN_LIMIT_S, RUN_LIMIT_TIMES * p99_s)
        self._runs += 1


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED_BYTES) * _ALIGNED_BYTES
