"""The runtime and its engines: what a plan holds, or None and a line in the log."""

from trt_double import plan
from trt_double.board import board, fault
from trt_double.bound import Bound
from trt_double.context import IExecutionContext
from trt_double.device import GPU, CudaError
from trt_double.values import ENUMERATIONS, Dims, Severity, data_type

MODE = ENUMERATIONS["TensorIOMode"]


class Runtime(Bound):
    """Reads plans."""

    def __init__(self, logger):
        self._logger = logger

    def deserialize_cuda_engine(self, serialized_engine):
        """Return the engine of a plan, None where it is not a whole plan."""
        try:
            header, onnx = plan.unpack(serialized_engine)
            if fault("deserialize_none"):
                raise ValueError("Serialization assertion failed")
            return ICudaEngine(header, onnx, self._logger)
        except (ValueError, plan.UnreadableModelError, CudaError) as error:
            self._logger.log(Severity.ERROR, f"Deserialize the cuda engine failed: {error}")
            return None


class ICudaEngine(Bound):
    """One network, ready to run: its weights are in GPU memory as long as it lives."""

    def __init__(self, header, onnx, logger):
        self._header = header
        self._logger = logger
        self._model = plan.Model(onnx)
        self._tensors = header["tensors"]
        self._names = [tensor["name"] for tensor in self._tensors]
        self._profiles = header["profiles"]
        self._weights = GPU.allocate(board("engine_bytes") or len(onnx))

    def __del__(self):
        if "_weights" in self.__dict__:
            GPU.forget(self._weights)

    def _tensor(self, wanted):
        """Return a tensor by name, or by the index of its binding."""
        return self._tensors[self._names.index(wanted) if isinstance(wanted, str) else wanted]

    num_io_tensors = property(lambda self: len(self._names))
    num_bindings = property(lambda self: len(self._names))
    device_memory_size = property(lambda self: self._header["device_memory"])
    device_memory_size_v2 = property(lambda self: self._header["device_memory"])

    def get_binding_name(self, index):
        return self._tensor(index)["name"]

    def get_tensor_name(self, index):
        return self._names[index]

    def binding_is_input(self, binding):
        return self._tensor(binding)["input"]

    def get_tensor_mode(self, name):
        return MODE.INPUT if self._tensor(name)["input"] else MODE.OUTPUT

    def get_binding_shape(self, binding):
        return Dims(self._tensor(binding)["shape"])

    def get_tensor_shape(self, name):
        return Dims(self._tensor(name)["shape"])

    def get_binding_dtype(self, binding):
        return data_type(self._tensor(binding)["dtype"])

    def get_tensor_dtype(self, name):
        return data_type(self._tensor(name)["dtype"])

    def get_profile_shape(self, profile_index, binding):
        return [Dims(shape) for shape in self._profiles[profile_index][self._tensor(binding)["name"]]]

    def get_tensor_profile_shape(self, name, profile_index):
        return [Dims(shape) for shape in self._profiles[profile_index][name]]

    def create_execution_context(self, strategy):
        """Return a context without scratch memory of its own; there are no others here."""
        assert strategy.name == "USER_MANAGED"
        return self._context()

    def create_execution_context_without_device_memory(self):
        return self._context()

    def _context(self):
        try:
            if fault("context_none"):
                raise CudaError("out of memory")
            return IExecutionContext(self)
        except CudaError as error:
            self._logger.log(Severity.ERROR, f"Cannot create an execution context: Cuda failure: {error}")
            return None
