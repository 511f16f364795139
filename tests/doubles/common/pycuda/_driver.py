"""The part of pycuda that is bound from C++: errors, the device and contexts."""

import atexit
import os
import sys
import threading
from functools import wraps

from trt_double.board import board, capability, fault
from trt_double.device import GPU, CudaError
from trt_double.device import Context as _Core


class Error(Exception):
    """A CUDA call failed."""


class MemoryError(Error):  # noqa: A001 - pycuda's name
    """There is not enough memory."""


class LogicError(Error):
    """The call was wrong, or an earlier one broke the GPU."""


class LaunchError(Error):
    """A kernel could not be started, or did not end well."""


class RuntimeError(Error):  # noqa: A001 - pycuda's name
    """There is no device, or it is not ready."""


def translated(routine):
    """Raise what `routine`, a CUDA call, refuses as pycuda raises it."""

    def decorate(function):
        @wraps(function)
        def call(*arguments, **named):
            try:
                return function(*arguments, **named)
            except CudaError as error:
                kinds = {"out of memory": MemoryError, "no CUDA-capable device is detected": RuntimeError}
                kinds["unspecified launch failure"] = LaunchError
                raise kinds.get(error.text, LogicError)(f"{routine} failed: {error.text}") from None

        return call

    return decorate


class device_attribute:  # noqa: N801 - pycuda's name
    """What can be asked about a device, with the driver's numbers."""

    MAX_THREADS_PER_BLOCK, WARP_SIZE, CLOCK_RATE, MULTIPROCESSOR_COUNT, INTEGRATED = 1, 10, 13, 16, 18
    CAN_MAP_HOST_MEMORY, COMPUTE_MODE, PCI_BUS_ID, UNIFIED_ADDRESSING = 19, 20, 33, 41
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, MANAGED_MEMORY = 75, 76, 83


_begun = []


@translated("cuInit")
def init(flags=0):
    """Begin; raises RuntimeError where there is no device."""
    if fault("cuda_initialization"):
        raise CudaError("no CUDA-capable device is detected")
    _begun.append(True)


def get_version():
    """Return the CUDA version that pycuda was built with."""
    return tuple(board("cuda"))


class Device:
    """One GPU; there is one, number 0."""

    @translated("cuDeviceGet")
    def __init__(self, number):
        if not _begun:
            raise CudaError("initialization error")
        if number != 0:
            raise CudaError("invalid device ordinal")

    @staticmethod
    @translated("cuDeviceGetCount")
    def count():
        if not _begun:
            raise CudaError("initialization error")
        return 1

    def name(self):
        return board("gpu")

    def compute_capability(self):
        return capability()

    def total_memory(self):
        return board("total_bytes")

    def get_attribute(self, attribute):
        major, minor = capability()
        known = {
            device_attribute.MAX_THREADS_PER_BLOCK: 1024,
            device_attribute.WARP_SIZE: 32,
            device_attribute.CLOCK_RATE: 1300500,
            device_attribute.MULTIPROCESSOR_COUNT: 2,
            device_attribute.INTEGRATED: int(board("integrated")),
            device_attribute.CAN_MAP_HOST_MEMORY: 1,
            device_attribute.COMPUTE_MODE: 0,
            device_attribute.PCI_BUS_ID: 0,
            device_attribute.UNIFIED_ADDRESSING: 1,
            device_attribute.COMPUTE_CAPABILITY_MAJOR: major,
            device_attribute.COMPUTE_CAPABILITY_MINOR: minor,
            device_attribute.MANAGED_MEMORY: 1,
        }
        return known[attribute]

    @translated("cuCtxCreate")
    def make_context(self, flags=0):
        """Return a new context, current on this thread."""
        GPU.check()
        made = Context(_Core(), True)
        _push(made)
        return made

    @translated("cuDevicePrimaryCtxRetain")
    def retain_primary_context(self):
        """Return the device's primary context, not current yet."""
        GPU.check()
        return Context(GPU.primary, False)


_stacks = {}  # thread -> its contexts, the current one last


def _stack():
    return _stacks.setdefault(threading.get_ident(), [])


def _push(context):
    _stack().append(context)
    GPU.stack.append(context._core)


class Context:
    """A CUDA context; it belongs to the thread that has pushed it."""

    def __init__(self, core, is_own):
        self._core = core
        self._is_own = is_own
        self._valid = True
        self._thread = threading.get_ident()

    @property
    def handle(self):
        return id(self._core)

    @translated("cuCtxPushCurrent")
    def push(self):
        if not self._valid:
            raise CudaError("context is destroyed")
        if any(self in stack for thread, stack in _stacks.items() if thread != threading.get_ident()):
            raise CudaError("invalid device context")
        _push(self)

    @staticmethod
    def pop():
        if not _stack():
            raise LogicError("context::pop failed: invalid device context - cannot pop non-current context")
        _stack().pop()
        GPU.stack.pop()

    def detach(self):
        if not self._valid:
            raise LogicError("context::detach failed: invalid device context - cannot detach from invalid context")
        self._valid = False
        if _stack() and _stack()[-1] is self:
            Context.pop()

    @staticmethod
    @translated("cuCtxSynchronize")
    def synchronize():
        GPU.check_context()
        GPU.drain()


def _check_stack():
    """End as pycuda does where a context was left current: its C++ aborts the process."""
    if _stack():
        sys.stderr.write("PyCUDA ERROR: The context stack was not empty upon module cleanup.\n")
        sys.stderr.flush()
        os.abort()


atexit.register(_check_stack)
