"""pycuda's streams and events, on the simulated GPU."""

import time

from trt_double.device import GPU, CudaError

from pycuda._driver import LogicError, translated


class event_flags:  # noqa: N801 - pycuda's name
    """How an event is waited for."""

    DEFAULT, BLOCKING_SYNC, DISABLE_TIMING = 0, 1, 2


def check_explicit_context():
    """Raise as pycuda's objects do that belong to a context: streams, events and allocations."""
    if not GPU.stack:
        raise LogicError("explicit_context_dependent failed: invalid device context - no currently active context?")


class Stream:
    """Work in order."""

    @translated("cuStreamCreate")
    def __init__(self, flags=0):
        check_explicit_context()
        GPU.check()
        self._core = GPU.stream()

    def __del__(self):
        if "_core" in self.__dict__:
            GPU.streams.pop(self._core.handle, None)

    @property
    def handle(self):
        return self._core.handle

    @translated("cuStreamSynchronize")
    def synchronize(self):
        GPU.check_context()
        self._core.drain()


class Event:
    """A moment on a stream."""

    @translated("cuEventCreate")
    def __init__(self, flags=0):
        check_explicit_context()
        GPU.check()
        self._flags = flags
        self._stream = None
        self._at_s = None

    @translated("cuEventRecord")
    def record(self, stream=None):
        GPU.check_context()
        self._stream = stream._core if stream is not None else GPU.streams[0]
        self._at_s = None
        self._work = self._arrive  # the very object that is queued: a bound method is made anew at each access
        self._stream.put(self._work)
        return self

    def _arrive(self, stream):
        self._at_s = time.perf_counter()

    @translated("cuEventSynchronize")
    def synchronize(self):
        GPU.check_context()
        if self._stream is not None:
            self._stream.drain(self._work)
        return self

    @translated("cuEventElapsedTime")
    def time_till(self, event):
        """Return the milliseconds from this event to a later one; both must have happened."""
        GPU.check_context()
        if (self._flags | event._flags) & event_flags.DISABLE_TIMING:
            raise CudaError("invalid resource handle")
        if self._stream is None or event._stream is None:
            raise CudaError("invalid resource handle")
        if self._at_s is None or event._at_s is None:
            raise CudaError("device not ready")
        return (event._at_s - self._at_s) * 1000.0

    def time_since(self, event):
        """Return the milliseconds from an earlier event to this one."""
        return event.time_till(self)
