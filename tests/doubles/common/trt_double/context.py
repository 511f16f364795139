"""An execution context: shapes and addresses in, work on a stream out; the sums are ONNX Runtime's."""

import ctypes

import numpy as np

from trt_double.board import RULES, fault
from trt_double.bound import Bound
from trt_double.device import ALIGNMENT_BYTES, GPU, CudaError
from trt_double.values import Severity

SCRATCH_USED = 0xAA  # what a run leaves in its scratch memory


class RefusedError(Exception):
    """Why a call returns False, in the words of the log."""


class IExecutionContext(Bound):
    """Runs one engine, one run at a time."""

    def __init__(self, engine, with_memory):
        self._engine = engine
        self._addresses = {}
        self._shapes = {}
        for tensor in self._inputs():
            if -1 not in tensor["shape"]:
                self._shapes[tensor["name"]] = tuple(tensor["shape"])
        self._own_scratch = GPU.allocate(engine._header["device_memory"]) if with_memory else None
        self._scratch = self._own_scratch

    def __del__(self):
        if self.__dict__.get("_own_scratch") is not None:
            GPU.forget(self._own_scratch)

    @property
    def device_memory(self):
        raise AttributeError("unreadable attribute")  # it can only be set

    @device_memory.setter
    def device_memory(self, memory):
        # Up to 8.4 the property takes a void pointer, which Python can give only as a capsule; later ones take an int.
        self._set_scratch(_capsule(memory) if RULES.get("device_memory_is_capsule") else _integer(memory))

    def set_device_memory(self, memory, size):
        if _integer(size) < self._engine._header["device_memory"]:
            self._log(f"Device memory of {size} bytes is smaller than the engine needs")
            return
        self._set_scratch(_integer(memory))

    def set_binding_shape(self, binding, shape):
        return self._set_shape(self._engine._tensor(binding), shape)

    def set_input_shape(self, name, shape):
        return self._set_shape(self._engine._tensor(name), shape)

    def set_tensor_address(self, name, memory):
        if name not in self._engine._names:
            return self._refuse(f"setTensorAddress: there is no tensor named {name}")
        self._addresses[name] = _integer(memory)
        return True

    def execute_async_v2(self, bindings, stream_handle, input_consumed=None):
        """Queue a run on the stream; return whether it could be."""
        return self._enqueue(stream_handle, self._work(self._by_binding, bindings))

    def execute_async_v3(self, stream_handle):
        """Queue a run on the stream; return whether it could be."""
        return self._enqueue(stream_handle, self._work(self._by_name))

    def _enqueue(self, stream_handle, work):
        stream = GPU.streams.get(_integer(stream_handle))
        if work is None:
            return False
        if stream is None:
            return self._refuse("Cuda Runtime (invalid resource handle): there is no such stream")
        stream.put(work)
        return True

    def _work(self, addresses_of, *arguments):
        """Return the run as a callable, None (and a line in the log) where TensorRT would refuse it."""
        try:
            if GPU.broken:
                raise RefusedError(f"Cuda Runtime ({GPU.broken})")
            if fault("enqueue_false"):
                raise RefusedError("Cuda Runtime (invalid argument)")
            if not GPU.stack:
                raise RefusedError("Cuda Runtime (invalid resource handle): the engine's context is not current")
            if self._unspecified():
                raise RefusedError(f"All input shapes must be specified: {self._unspecified()}")
            addresses = addresses_of(*arguments)
            if self._scratch is None:
                raise RefusedError("The context has no device memory: set it before it runs")
        except RefusedError as error:
            self._log(str(error))
            return None
        return _Run(self, addresses)

    def _by_binding(self, bindings):
        names = self._engine._names
        if len(bindings) != len(names) * len(self._engine._profiles):
            raise RefusedError(f"Expected as many bindings as the engine has, got {len(bindings)}")
        return {name: _integer(address) for name, address in zip(names, bindings)}  # noqa: B905 - Python 3.6

    def _by_name(self):
        for name in self._engine._names:
            address = self._addresses.get(name, 0)
            if not address or address % ALIGNMENT_BYTES:
                raise RefusedError(f"The address of {name} is not set, or not aligned to 256 bytes")
        return dict(self._addresses)

    def _inputs(self):
        return [tensor for tensor in self._engine._tensors if tensor["input"]]

    def _unspecified(self):
        return [tensor["name"] for tensor in self._inputs() if tensor["name"] not in self._shapes]

    def _set_shape(self, tensor, shape):
        shape = tuple(int(extent) for extent in shape)
        low, _, high = self._engine._profiles[0].get(tensor["name"], (None, None, None))
        if not tensor["input"] or len(shape) != len(tensor["shape"]):
            return self._refuse("{}: a shape of {} extents cannot be set".format(tensor["name"], len(shape)))
        if not all(least <= extent <= most for least, extent, most in zip(low, shape, high)):  # noqa: B905 - Python 3.6
            return self._refuse("{}: {} is outside of the profile, {} to {}".format(tensor["name"], shape, low, high))
        self._shapes[tensor["name"]] = shape
        return True

    def _set_scratch(self, address):
        if not address or address % ALIGNMENT_BYTES:
            self._log("Device memory is null or not aligned to 256 bytes")
            return
        self._scratch = address

    def _refuse(self, text):
        self._log(text)
        return False

    def _log(self, text):
        self._engine._logger.log(Severity.ERROR, "IExecutionContext: " + text)


class _Run:
    """One run: what the stream calls when its turn comes."""

    def __init__(self, context, addresses):
        self._engine = context._engine
        self._shapes = dict(context._shapes)
        self._scratch = context._scratch
        self._addresses = addresses
        self._broken = fault("enqueue_error")
        self._not_a_number = fault("nan_outputs")

    def __call__(self, stream):
        if self._broken:
            raise CudaError("an illegal memory access was encountered")
        header, model = self._engine._header, self._engine._model
        feeds = {}
        for tensor in header["tensors"]:
            if tensor["input"]:
                shape = self._shapes[tensor["name"]]
                feeds[tensor["name"]] = self._memory(tensor, shape).reshape(shape)
        _accessed(self._scratch, header["device_memory"]).fill(SCRATCH_USED)
        found = model.run(feeds, header["precision"], header["scales"])
        outputs = [tensor for tensor in header["tensors"] if not tensor["input"]]
        for tensor, array in zip(outputs, found):  # noqa: B905 - Python 3.6
            destination = self._memory(tensor, array.shape)
            destination[:] = array.reshape(-1)
            if self._not_a_number:
                destination.fill(np.nan)

    def _memory(self, tensor, shape):
        kind = np.dtype(tensor["dtype"])
        size_bytes = int(np.prod(shape)) * kind.itemsize
        return _accessed(self._addresses[tensor["name"]], size_bytes).view(kind)


def _accessed(address, size_bytes):
    """Return device memory as a kernel sees it: what is not there is an illegal access."""
    try:
        return GPU.memory(address, size_bytes)
    except CudaError:
        raise CudaError("an illegal memory access was encountered") from None


def _capsule(memory):
    """Return the address in a PyCapsule, 0 for None; raise TypeError for all else, as the binding does."""
    if memory is None:
        return 0
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_void_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    if type(memory).__name__ != "PyCapsule":
        raise TypeError(f"(): incompatible function arguments: a capsule, not {type(memory).__name__}")
    return api.PyCapsule_GetPointer(memory, api.PyCapsule_GetName(memory))


def _integer(address):
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"incompatible function arguments: an address is an int, not {type(address).__name__}")
    return address
