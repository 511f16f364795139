"""pycuda's memory: on the device, page-locked on the host, registered, and the copies between them."""

import numpy as np
from trt_double.board import board, fault
from trt_double.device import GPU, CudaError

from pycuda._driver import LogicError, translated


class DeviceAllocation:
    """Memory of the GPU; int() is its address."""

    def __init__(self, address):
        self._address = address

    def __int__(self):
        return self._address

    def __index__(self):
        return self._address

    @translated("cuMemFree")
    def free(self):
        if self._address is None:
            raise LogicError("device_allocation::free failed: invalid resource handle")
        address, self._address = self._address, None
        GPU.free(address)

    def __del__(self):
        if self.__dict__.get("_address") is not None:
            GPU.forget(self._address)


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


class HostPointer:
    """Host memory that the GPU may read; the base of an array over it."""

    def __init__(self, content, flags, shape, kind, order):
        self._content = content  # uint8
        self._flags = flags
        self._mapped = None
        self.__array_interface__ = content[: int(np.prod(shape)) * kind.itemsize].view(kind).__array_interface__
        strides = np.empty(shape, kind, order).strides
        self.__array_interface__ = dict(self.__array_interface__, shape=tuple(shape), strides=strides)

    def _release(self):
        if self._mapped is not None:
            GPU.free(self._mapped)
            self._mapped = None


class PagelockedHostAllocation(HostPointer):
    """Page-locked memory."""

    def free(self):
        self._release()


HostAllocation = PagelockedHostAllocation


@translated("cuMemHostAlloc")
def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    """Return an array over page-locked memory, not initialised."""
    GPU.check_context()
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    kind = np.dtype(dtype)
    content = np.full(max(1, int(np.prod(shape)) * kind.itemsize), 0xCD, np.uint8)
    return np.asarray(PagelockedHostAllocation(content, mem_flags, shape, kind, order))


def _host_bytes(buffer, is_written):
    content = memoryview(buffer)
    if is_written and content.readonly:
        raise BufferError("Object is not writable.")
    if not content.c_contiguous:
        raise BufferError("the buffer is not contiguous")
    return np.frombuffer(content.cast("B"), np.uint8)


def _address(pointer):
    if isinstance(pointer, DeviceAllocation) or (isinstance(pointer, int) and not isinstance(pointer, bool)):
        return int(pointer)
    raise TypeError(f"a device address is a DeviceAllocation or an int, not {type(pointer).__name__}")


def _copy(stream, destination, source):
    """Queue a copy between arrays or (address, bytes) of the device, which must be there when it is queued."""
    GPU.check_context()
    for place in (destination, source):
        if isinstance(place, tuple):
            GPU.memory(*place)

    def work(_stream):
        ends = [GPU.memory(*place) if isinstance(place, tuple) else place for place in (destination, source)]
        ends[0][:] = ends[1]

    core = stream._core if stream is not None else GPU.streams[0]
    core.put(work)
    return core


@translated("cuMemcpyHtoDAsync")
def memcpy_htod_async(dest, src, stream=None):
    content = _host_bytes(src, False)
    _copy(stream, (_address(dest), content.nbytes), content)


@translated("cuMemcpyDtoHAsync")
def memcpy_dtoh_async(dest, src, stream=None):
    content = _host_bytes(dest, True)
    _copy(stream, content, (_address(src), content.nbytes))


@translated("cuMemcpyHtoD")
def memcpy_htod(dest, src):
    content = _host_bytes(src, False)
    _copy(None, (_address(dest), content.nbytes), content).drain()
