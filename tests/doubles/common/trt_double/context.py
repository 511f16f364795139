"""An execution context: shapes and addresses in, work on a stream out; the sums are ONNX Runtime's."""

import ctypes

import numpy as np

from trt_double.board import RULES, fault
from trt_double.bound import Bound
from trt_double.device import GPU, CudaError
from trt_double.values import Severity

SCRATCH_USED = 0xAA  # what a run leaves in its scratch memory


class IExecutionContext(Bound):
    """Runs one engine, one run at a time, in scratch memory that its user gives."""

    def __init__(self, engine):
        self._engine = engine
        self._addresses = {}
        self._shapes = {tensor["name"]: tuple(tensor["shape"]) for tensor in engine._tensors if tensor["input"]}
        self._scratch = None

    @property
    def device_memory(self):
        raise AttributeError("unreadable attribute")  # it can only be set

    @device_memory.setter
    def device_memory(self, memory):
        # Up to 8.4 the property takes a void pointer, which Python can give only as a capsule; later ones take an int.
        self._scratch = _capsule(memory) if RULES.get("device_memory_is_capsule") else _integer(memory)

    def set_device_memory(self, memory, size):
        if size < self._engine._header["device_memory"]:
            self._refuse(f"Device memory of {size} bytes is smaller than the engine needs")
            return
        self._scratch = _integer(memory)

    def set_binding_shape(self, binding, shape):
        return self._set_shape(self._engine._names[binding], shape)

    def set_input_shape(self, name, shape):
        return self._set_shape(name, shape)

    def _set_shape(self, name, shape):
        low, _, high = self._engine._profiles[0][name]
        if not all(least <= extent <= most for least, extent, most in zip(low, shape, high)):  # noqa: B905 - Python 3.6
            return self._refuse(f"{name}: {shape} is outside of the profile, {low} to {high}")
        self._shapes[name] = tuple(shape)
        return True

    def set_tensor_address(self, name, memory):
        self._addresses[name] = _integer(memory)
        return name in self._engine._names

    def execute_async_v2(self, bindings, stream_handle):
        """Queue a run on the stream; return whether it could be."""
        addresses = zip(self._engine._names, map(_integer, bindings))  # noqa: B905 - Python 3.6
        return self._enqueue(stream_handle, dict(addresses))

    def execute_async_v3(self, stream_handle):
        """Queue a run on the stream; return whether it could be."""
        return self._enqueue(stream_handle, dict(self._addresses))

    def _enqueue(self, stream_handle, addresses):
        if fault("enqueue_false"):
            return self._refuse("Cuda Runtime (invalid argument)")
        if any(-1 in shape for shape in self._shapes.values()):
            return self._refuse("All input shapes must be specified")
        GPU.streams[_integer(stream_handle)].put(_Run(self, addresses))
        return True

    def _refuse(self, text):
        self._engine._logger.log(Severity.ERROR, "IExecutionContext: " + text)
        return False


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
        GPU.memory(self._scratch, header["device_memory"]).fill(SCRATCH_USED)
        found = model.run(feeds, header["precision"])
        outputs = [tensor for tensor in header["tensors"] if not tensor["input"]]
        for tensor, array in zip(outputs, found):  # noqa: B905 - Python 3.6
            destination = self._memory(tensor, array.shape)
            destination[:] = array.reshape(-1)
            if self._not_a_number:
                destination.fill(np.nan)

    def _memory(self, tensor, shape):
        kind = np.dtype(tensor["dtype"])
        return GPU.memory(self._addresses[tensor["name"]], int(np.prod(shape)) * kind.itemsize).view(kind)


def _capsule(memory):
    """Return the address in a PyCapsule; raise TypeError for all else, as the binding does."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_void_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    if type(memory).__name__ != "PyCapsule":
        raise TypeError(f"(): incompatible function arguments: a capsule, not {type(memory).__name__}")
    return api.PyCapsule_GetPointer(memory, api.PyCapsule_GetName(memory))


def _integer(address):
    if not isinstance(address, int):
        raise TypeError(f"incompatible function arguments: an address is an int, not {type(address).__name__}")
    return address
