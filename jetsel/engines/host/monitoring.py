"""What TensorRT calls back during a build: its log, and an INT8 calibration that wants photographs."""

import threading
import time
from typing import Any, Callable, List, Optional

from .backend import NextBatch
from .gpu import Gpu
from .messages import Progress

INTERVAL_S = 0.5


class BuildMonitor:
    """Passes progress on twice a second, from the building thread only; an exception is kept until the build is over.

    failure: that exception. It may not pass through TensorRT.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._thread = threading.get_ident()
        self._next = 0.0
        self.failure: Optional[BaseException] = None

    def tell(self, stage: str) -> None:
        """Pass on a stage."""
        now = time.monotonic()
        if self.failure is None and now >= self._next and threading.get_ident() == self._thread:
            self._next = now + INTERVAL_S
            self.guard(lambda: self._progress(stage[:100]))

    def guard(self, call: Callable[[], Any]) -> Any:
        """Return what the call does; keep what it raises, and return None then."""
        try:
            return call() if self.failure is None else None
        except Exception as error:  # whatever it is, it may not pass through TensorRT
            self.failure = error
            return None


class Calibration:
    """Feeds an INT8 calibration with batches of photographs, through one buffer on the GPU."""

    def __init__(self, gpu: Gpu, monitor: BuildMonitor, next_batch: NextBatch, shape: List[int]) -> None:
        import numpy

        self._gpu, self._monitor, self._next_batch = gpu, monitor, next_batch
        self._count = shape[0]
        self._memory = gpu.allocate(numpy.empty(shape, numpy.float32).nbytes)

    def _next(self) -> Optional[List[int]]:
        """Copy the next batch to the GPU and return its address in a list; None at the end."""
        batch = self._next_batch(self._count)
        if batch is None:
            return None
        self._gpu.cuda.memcpy_htod(self._memory, batch)
        self._monitor.tell("calibrating")
        return [int(self._memory)]

    def calibrator(self, trt: Any) -> Any:
        """Return the calibrator that TensorRT asks."""
        calibration, guard = self, self._monitor.guard

        class Calibrator(trt.IInt8EntropyCalibrator2):  # type: ignore[misc]
            def get_batch_size(self) -> int:
                return calibration._count

            def get_batch(self, names: List[str]) -> Any:
                return guard(calibration._next)

            def read_calibration_cache(self) -> Optional[bytes]:
                return None  # scales belong to the photographs of one build

            def write_calibration_cache(self, cache: Any) -> None:
                pass

        return Calibrator()

    def close(self) -> None:
        """Free the buffer."""
        self._gpu.free(self._memory)
