"""The part of pycuda's driver that the engine host uses, over the simulated GPU (trt_double/device.py)."""

import atexit
import os
import sys
import time
from functools import wraps

import numpy as np
from trt_double.board import board, capability, fault
from trt_double.device import GPU, CudaError


class Error(Exception):
    """A CUDA call failed."""


class MemoryError(Error):  # noqa: A001 - pycuda's name
    """There is not enough memory."""


class LogicError(Error):
    """The call was wrong, or an earlier one broke the GPU."""


class RuntimeError(Error):  # noqa: A001 - pycuda's name
    """There is no device, or it is not ready."""


KINDS = {"out of memory": MemoryError, "no CUDA-capable device is detected": RuntimeError}


def translated(routine):
    """Raise what `routine`, a CUDA call, refuses as pycuda raises it."""

    def decorate(function):
        @wraps(function)
        def call(*arguments, **named):
            try:
                return function(*arguments, **named)
            except CudaError as error:
                raise KINDS.get(error.text, LogicError)(f"{routine} failed: {error.text}") from None

        return call

    return decorate


class device_attribute:  # noqa: N801 - pycuda's name
    """What can be asked about a device, with the driver's numbers."""

    INTEGRATED = 18


@translated("cuInit")
def init(flags=0):
    """Begin; raises RuntimeError where there is no device."""
    if fault("cuda_initialization"):
        raise CudaError("no CUDA-capable device is detected")


def get_version():
    """Return the CUDA version that pycuda was built with."""
    return tuple(board("cuda"))


class Device:
    """One GPU; there is one, number 0."""

    def __init__(self, number):
        self.number = number

    def name(self):
        return board("gpu")

    def compute_capability(self):
        return capability()

    def get_attribute(self, attribute):
        return {device_attribute.INTEGRATED: int(board("integrated"))}[attribute]

    @translated("cuDevicePrimaryCtxRetain")
    def retain_primary_context(self):
        """Return the device's primary context, not current yet."""
        GPU.check()
        return Context()


class Context:
    """The primary context."""

    def push(self):
        GPU.stack.append(self)

    @staticmethod
    def pop():
        GPU.stack.pop()

    def detach(self):
        """Give it back."""


def _check_stack():
    """End as pycuda does where a context was left current: its C++ aborts the process."""
    if GPU.stack:
        sys.stderr.write("PyCUDA ERROR: The context stack was not empty upon module cleanup.\n")
        sys.stderr.flush()
        os.abort()


atexit.register(_check_stack)


class DeviceAllocation:
    """Memory of the GPU; int() is its address."""

    def __init__(self, address):
        self._address = address

    def __int__(self):
        return self._address

    @translated("cuMemFree")
    def free(self):
        GPU.free(self._address)


@translated("cuMemAlloc")
def mem_alloc(bytes):  # noqa: A002 - pycuda's name
    """Return so many bytes of the GPU's memory; raises MemoryError where there are not as many."""
    GPU.check_context()
    if fault("mem_alloc_memory"):
        raise CudaError("out of memory")
    return DeviceAllocation(GPU.allocate(int(bytes)))


@translated("cuMemGetInfo")
def mem_get_info():
    """Return (free, total) in bytes."""
    GPU.check_context()
    return board("total_bytes") - GPU.used_bytes, board("total_bytes")


@translated("cuMemHostAlloc")
def pagelocked_empty(shape, dtype):
    """Return an array over page-locked memory, not initialised."""
    GPU.check_context()
    kind = np.dtype(dtype)
    return np.full(int(np.prod(shape)) * kind.itemsize, 0xCD, np.uint8).view(kind).reshape(shape)


def _host_bytes(buffer):
    return np.frombuffer(memoryview(buffer).cast("B"), np.uint8)


def _copy(stream, destination, source):
    """Queue a copy between arrays or (address, bytes) of the device, which must be there when it is queued."""
    GPU.check_context()
    for place in (destination, source):
        if isinstance(place, tuple):
            GPU.memory(*place)

    def work(_stream):
        ends = [GPU.memory(*place) if isinstance(place, tuple) else place for place in (destination, source)]
        ends[0][:] = ends[1]

    stream._core.put(work)


@translated("cuMemcpyHtoDAsync")
def memcpy_htod_async(dest, src, stream):
    content = _host_bytes(src)
    _copy(stream, (int(dest), content.nbytes), content)


@translated("cuMemcpyDtoHAsync")
def memcpy_dtoh_async(dest, src, stream):
    content = _host_bytes(dest)
    _copy(stream, content, (int(src), content.nbytes))


class Stream:
    """Work in order."""

    def __init__(self):
        self._core = GPU.stream()

    @property
    def handle(self):
        return self._core.handle

    @translated("cuStreamSynchronize")
    def synchronize(self):
        GPU.check_context()
        self._core.drain()


class Event:
    """A moment on a stream."""

    def __init__(self):
        self._at_s = None

    @translated("cuEventRecord")
    def record(self, stream):
        GPU.check_context()
        self._at_s = None
        stream._core.put(self._arrive)

    def _arrive(self, stream):
        self._at_s = time.perf_counter()

    @translated("cuEventElapsedTime")
    def time_since(self, event):
        """Return the milliseconds from an earlier event to this one; both must have happened."""
        if self._at_s is None or event._at_s is None:
            raise CudaError("device not ready")
        return (self._at_s - event._at_s) * 1000.0
