"""The GPU through pycuda: its context, its memory, and page-locked memory for copies."""

import ctypes
import importlib
from typing import Any, Dict, List, Optional, Tuple

from .backend import available_bytes, total_bytes
from .messages import DeviceFailed, Refusal, log_line


class Gpu:
    """The first GPU: its context, which belongs to the host's only thread, one stream, and memory that models share."""

    def __init__(self) -> None:
        cuda: Any = importlib.import_module("pycuda.driver")
        self.cuda = cuda
        try:
            cuda.init()
            self.device = cuda.Device(0)
            self._context = self.device.retain_primary_context()  # TensorRT's own threads see only the primary context
            self._context.push()
            self.stream = cuda.Stream()
            self.began, self.ended = cuda.Event(), cuda.Event()  # before and after a run, to time it
        except cuda.Error as error:
            message = f"CUDA does not start: {error}; check that this user may use the GPU"
            raise Refusal("unsupported", message) from None
        self.scratch = Scratch(self)
        self._staging: Any = None  # page-locked memory, see `stage`

    def describe(self) -> Dict[str, Any]:
        """Return the field "gpu" of the reply to hello (docs/engine-host.md)."""
        major, minor = self.device.compute_capability()
        return {
            "name": str(self.device.name()),
            "compute_capability": f"{major}.{minor}",
            "is_integrated": self.is_integrated(),
            # By NVIDIA's support matrices; a builder could tell, but it would load hundreds of megabytes of kernels.
            "fast_int8": (major, minor) == (6, 1) or major >= 7,
        }

    def is_integrated(self) -> bool:
        """Return whether GPU and processor share their memory, as on every Jetson."""
        return bool(self.device.get_attribute(self.cuda.device_attribute.INTEGRATED))

    def memory(self) -> Tuple[Optional[int], Optional[int]]:
        """Return available and total bytes, of the board if its GPU has no memory of its own; None if unknown."""
        if self.is_integrated():
            return available_bytes(), total_bytes()
        try:
            free, total = self.cuda.mem_get_info()
        except self.cuda.Error as error:
            raise DeviceFailed(f"the GPU does not report how much memory is free: {error}") from None
        return int(free), int(total)

    def allocate(self, size_bytes: int) -> Any:
        """Return device memory, which cuMemAlloc aligns to 256 bytes; raises Refusal if there is too little."""
        try:
            return self.cuda.mem_alloc(size_bytes)
        except self.cuda.MemoryError as error:
            message = (
                "the GPU has less than {} bytes of free memory ({}): serve fewer or smaller models ([models] only)"
            )
            raise Refusal("load-failed", message.format(size_bytes, error)) from None

    def free(self, memory: Any) -> None:
        """Free device memory; after a fault of the GPU, the end of the process frees it."""
        try:
            memory.free()
        except self.cuda.Error as error:
            log_line(f"GPU memory was not freed: {error}")

    def stage(self, batch: Any, dtype: str) -> Any:
        """Return the batch as dtype in page-locked memory, for a copy to the GPU; the next call overwrites it."""
        import numpy

        size_bytes = batch.size * numpy.dtype(dtype).itemsize
        if self._staging is None or self._staging.nbytes < size_bytes:
            self._staging = self.cuda.pagelocked_empty(size_bytes, numpy.uint8)
        copy = self._staging[:size_bytes].view(dtype).reshape(batch.shape)
        copy[...] = batch
        return copy

    def close(self) -> None:
        """Release the stream, the buffers and then the context; models must be closed before."""
        self.scratch.close()
        self._staging = None
        del self.began, self.ended, self.stream
        try:
            self._context.pop()
            self._context.detach()
        except self.cuda.Error as error:
            log_line(f"the CUDA context was not released: {error}")


class Scratch:
    """Working memory for runs: one buffer, as large as the largest engine needs, because only one runs at a time."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._contexts: List[Any] = []  # that use the buffer
        self._memory: Any = None  # the buffer; None before the first context
        self._size = 0  # in bytes

    def assign(self, context: Any, size_bytes: int) -> None:
        """Let a TensorRT execution context use the buffer, enlarged if necessary; raises Refusal if memory runs out."""
        self._contexts.append(context)
        if size_bytes > self._size:
            larger, former = self._gpu.allocate(size_bytes), self._memory
            self._memory, self._size = larger, size_bytes
            for other in self._contexts:
                self._set(other)
            if former is not None:
                self._gpu.free(former)
        elif self._memory is not None:
            self._set(context)

    def remove(self, context: Any) -> None:
        """Forget a context that is closed; free the buffer after the last one."""
        self._contexts = [other for other in self._contexts if other is not context]
        if not self._contexts:
            self.close()

    def close(self) -> None:
        memory, self._memory, self._size = self._memory, None, 0
        if memory is not None:
            self._gpu.free(memory)

    def _set(self, context: Any) -> None:
        """Pass the buffer to a context, by the call that this TensorRT version has."""
        address = int(self._memory)
        if hasattr(context, "set_device_memory"):
            context.set_device_memory(address, self._size)
            return
        try:
            context.device_memory = address
        except TypeError:  # up to 8.4 it takes only a C pointer, which in Python is a capsule
            capsule = ctypes.pythonapi.PyCapsule_New
            capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            context.device_memory = capsule(address, None, None)
