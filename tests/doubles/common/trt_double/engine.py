"""The runtime and its engines: a plan of this very TensorRT and GPU, or None and a line in the log."""

from trt_double import plan
from trt_double.board import RULES, board, fault
from trt_double.bound import Bound
from trt_double.context import IExecutionContext
from trt_double.device import GPU, CudaError
from trt_double.values import ENUMERATIONS, Dims, Severity, data_type

MODE = ENUMERATIONS["TensorIOMode"]


class Runtime(Bound):
    """Reads plans."""

    def __init__(self, logger):
        if fault("cuda_initialization"):
            logger.log(Severity.ERROR, "CUDA initialization failure with error: 35")
            raise TypeError("pybind11::init(): factory function returned nullptr")
        self._logger = logger

    def deserialize_cuda_engine(self, serialized_engine):
        """Return the engine of a plan, None where it is not of this TensorRT and GPU, or not a whole plan."""
        try:
            header, onnx = plan.unpack(serialized_engine)
            refused = self._refusal(header)
            if refused:
                raise ValueError(refused)
            return ICudaEngine(header, onnx, self._logger)
        except (ValueError, plan.UnreadableModelError, CudaError) as error:
            self._logger.log(Severity.ERROR, f"Deserialize the cuda engine failed: {error}")
            return None

    def _refusal(self, header):
        if fault("deserialize_none"):
            return "Serialization assertion failed"
        ours, theirs = RULES["version"], header["tensorrt"]
        if ours != theirs:
            return f"Version tag does not match: the plan was made by TensorRT {theirs}, not {ours}"
        if header["gpu"] != board("gpu"):
            return "the plan was made on {}, not {}: engines are not portable across devices".format(
                header["gpu"], board("gpu")
            )
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
        """Return a tensor by name, or by the index of its binding; each profile has bindings of its own."""
        if isinstance(wanted, str):
            if wanted not in self._names:
                raise ValueError(f"There is no tensor named {wanted}")
            return self._tensors[self._names.index(wanted)]
        if not 0 <= wanted < len(self._names) * len(self._profiles):
            raise IndexError(f"binding index {wanted} is out of range")
        return self._tensors[wanted % len(self._names)]

    num_io_tensors = property(lambda self: len(self._names))
    num_bindings = property(lambda self: len(self._names) * len(self._profiles))
    device_memory_size = property(lambda self: self._header["device_memory"])
    device_memory_size_v2 = property(lambda self: self._header["device_memory"])

    def get_binding_name(self, index):
        return self._tensor(index)["name"]

    def get_tensor_name(self, index):
        return self._names[index]

    def binding_is_input(self, binding):
        return self._tensor(binding)["input"]

    def get_tensor_mode(self, name):
        if name not in self._names:
            return MODE.NONE
        return MODE.INPUT if self._tensor(name)["input"] else MODE.OUTPUT

    def get_binding_shape(self, binding):
        return Dims(self._tensor(binding)["shape"])

    def get_tensor_shape(self, name):
        return Dims(self._tensor(name)["shape"]) if name in self._names else Dims([-1])

    def get_binding_dtype(self, binding):
        return data_type(self._tensor(binding)["dtype"])

    def get_tensor_dtype(self, name):
        return data_type(self._tensor(name)["dtype"])

    def get_profile_shape(self, profile_index, binding):
        return [Dims(shape) for shape in self._profiles[profile_index][self._tensor(binding)["name"]]]

    def get_tensor_profile_shape(self, name, profile_index):
        return [Dims(shape) for shape in self._profiles[profile_index][name]]

    def create_execution_context(self, strategy=None):
        """Return a context with scratch memory of its own, or without where the strategy is USER_MANAGED."""
        return self._context(strategy is None or strategy.name != "USER_MANAGED")

    def create_execution_context_without_device_memory(self):
        return self._context(False)

    def _context(self, with_memory):
        try:
            if fault("context_none"):
                raise CudaError("out of memory")
            return IExecutionContext(self, with_memory)
        except CudaError as error:
            self._logger.log(Severity.ERROR, f"Cannot create an execution context: Cuda failure: {error}")
            return None
