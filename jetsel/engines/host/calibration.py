"""An INT8 calibration, which calls back for photographs while TensorRT builds."""

from typing import Any, List, Optional

from .backend import NextBatch
from .gpu import Gpu


class Calibration:
    """Feeds an INT8 calibration with batches of photographs, through one buffer on the GPU.

    failure: what went wrong meanwhile, which may not pass through TensorRT.
    """

    def __init__(self, gpu: Gpu, next_batch: NextBatch, shape: List[int]) -> None:
        import numpy

        self._gpu, self._next_batch = gpu, next_batch
        self._count = shape[0]
        self._memory = gpu.allocate(numpy.empty(shape, numpy.float32).nbytes)
        self.failure: Optional[BaseException] = None

    def _next(self) -> Optional[List[int]]:
        """Copy the next batch to the GPU and return its address in a list; None at the end, and after a failure."""
        if self.failure is not None:
            return None
        try:
            batch = self._next_batch(self._count)
            if batch is None:
                return None
            self._gpu.cuda.memcpy_htod(self._memory, batch)
        except Exception as error:  # whatever it is: see above
            self.failure = error
            return None
        return [int(self._memory)]

    def calibrator(self, trt: Any) -> Any:
        """Return the calibrator that TensorRT asks."""
        calibration = self

        class Calibrator(trt.IInt8EntropyCalibrator2):  # type: ignore[misc]
            def get_batch_size(self) -> int:
                return calibration._count

            def get_batch(self, names: List[str]) -> Any:
                return calibration._next()

            def read_calibration_cache(self) -> Optional[bytes]:
                return None  # scales belong to the photographs of one build

            def write_calibration_cache(self, cache: Any) -> None:
                pass

        return Calibrator()

    def close(self) -> None:
        """Free the buffer."""
        self._gpu.free(self._memory)
