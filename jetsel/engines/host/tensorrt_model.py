"""One TensorRT engine: its tensors, its GPU memory, and its runs, with the calls of its TensorRT version."""

import collections
from typing import Any, Dict, List, Optional, Tuple

from .backend import HostModel
from .gpu import Gpu
from .messages import DeviceFailed, Refusal

Tensor = collections.namedtuple("Tensor", "name is_input shape dtype")  # shape: -1 for a variable side


class ByBinding:
    """The calls of TensorRT 8.0 to 8.4, which address an engine's inputs and outputs by index ("binding")."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.tensors = [
            Tensor(
                engine.get_binding_name(index),
                bool(engine.binding_is_input(index)),
                tuple(engine.get_binding_shape(index)),
                engine.get_binding_dtype(index),
            )
            for index in range(engine.num_bindings)
        ]

    def profile(self, name: str) -> Any:
        """Return the smallest, best and largest shape that an input may have."""
        return self._engine.get_profile_shape(0, self._index(name))

    def enqueue(self, context: Any, name: str, shape: Tuple[int, ...], addresses: Dict[str, int], stream: int) -> bool:
        """Queue a run on a CUDA stream, with the input `name` in this shape; return whether TensorRT accepted it."""
        if not context.set_binding_shape(self._index(name), shape):
            return False
        return bool(context.execute_async_v2([addresses[tensor.name] for tensor in self.tensors], stream))

    def _index(self, name: str) -> int:
        return [tensor.name for tensor in self.tensors].index(name)


class ByName:
    """The calls of TensorRT 8.5 and later, which address inputs and outputs by name. Same methods as ByBinding."""

    def __init__(self, engine: Any, trt: Any) -> None:
        self._engine = engine
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        self.tensors = [
            Tensor(
                name,
                engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
                tuple(engine.get_tensor_shape(name)),
                engine.get_tensor_dtype(name),
            )
            for name in names
        ]

    def profile(self, name: str) -> Any:
        return self._engine.get_tensor_profile_shape(name, 0)

    def enqueue(self, context: Any, name: str, shape: Tuple[int, ...], addresses: Dict[str, int], stream: int) -> bool:
        """Queue a run, see ByBinding.enqueue."""
        are_set = all(context.set_tensor_address(tensor, address) for tensor, address in addresses.items())
        return bool(are_set and context.set_input_shape(name, shape) and context.execute_async_v3(stream))


class TensorRTModel(HostModel):
    """One engine: its execution context, its GPU memory, and page-locked memory for its outputs."""

    def __init__(self, trt: Any, gpu: Gpu, log: Any, engine: Any, input_px: List[int]) -> None:
        self._gpu, self._log, self._engine = gpu, log, engine
        self._calls: Any = ByName(engine, trt) if hasattr(engine, "num_io_tensors") else ByBinding(engine)
        self._buffers: Dict[str, Any] = {}  # GPU memory of each input and output
        self._host_outputs: Dict[str, Tuple[Any, Any]] = {}  # page-locked array, and GPU memory
        self._context: Any = None
        try:
            self._check_input(trt, [3, *input_px])
            outputs = self._outputs()
            self._create_context(trt)
            self._allocate(trt, outputs)
        except BaseException:
            self.close()
            raise
        self._addresses = {name: int(memory) for name, memory in self._buffers.items()}

    def _check_input(self, trt: Any, expected: List[int]) -> None:
        """Read the input's name, type and batch limits; raises Refusal unless its shape is (n, *expected)."""
        inputs = [tensor for tensor in self._calls.tensors if tensor.is_input]
        if len(inputs) != 1 or list(inputs[0].shape[1:]) != expected:
            shapes, required = [tensor.shape for tensor in inputs], ["n", *expected]
            raise Refusal("load-failed", f"its inputs are {shapes}, not one {required}: build it again")
        self._input, self._shape = inputs[0].name, inputs[0].shape
        self._input_dtype = _numpy_name(trt, inputs[0])
        self._min_batch = self.max_batch = self._shape[0]
        if self._shape[0] < 0:
            smallest, _, largest = self._calls.profile(self._input)
            self._min_batch, self.max_batch = int(smallest[0]), int(largest[0])

    def _outputs(self) -> Dict[str, Any]:
        """Return the outputs by name: "logits", and "embedding" if it has one; raises Refusal if they are others."""
        outputs = {tensor.name: tensor for tensor in self._calls.tensors if not tensor.is_input}
        shapes = {name: tensor.shape for name, tensor in outputs.items()}
        are_rows = all(len(shape) == 2 and shape[0] == self._shape[0] and shape[1] > 0 for shape in shapes.values())
        if not are_rows or not {"logits"} <= set(outputs) <= {"logits", "embedding"}:
            message = "its outputs are {}: export it with logits (n, classes), and embedding (n, width) if it has one"
            raise Refusal("load-failed", message.format(shapes))
        return outputs

    def _create_context(self, trt: Any) -> None:
        """Create the execution context, which uses the shared working memory; raises Refusal."""
        self._log.clear()
        engine, size_bytes = self._engine, getattr(self._engine, "device_memory_size_v2", None)
        self.scratch_bytes = int(engine.device_memory_size if size_bytes is None else size_bytes)
        strategies: Any = getattr(trt, "ExecutionContextAllocationStrategy", None)
        if hasattr(strategies, "USER_MANAGED"):
            self._context = engine.create_execution_context(strategies.USER_MANAGED)
        else:
            self._context = engine.create_execution_context_without_device_memory()
        if self._context is None:
            raise Refusal("load-failed", f"TensorRT cannot create a context for it: {self._log.reason()}")
        self._gpu.scratch.assign(self._context, self.scratch_bytes)

    def _allocate(self, trt: Any, outputs: Dict[str, Any]) -> None:
        """Allocate memory for max_batch images: on the GPU, and page-locked for the outputs; raises Refusal."""
        import numpy

        rows = self.max_batch or 1
        image = numpy.empty(self._shape[1:], self._input_dtype)
        self._buffers[self._input] = self._gpu.allocate(rows * image.nbytes)
        for name, tensor in outputs.items():
            empty = self._gpu.cuda.pagelocked_empty((rows, tensor.shape[1]), numpy.dtype(_numpy_name(trt, tensor)))
            self._buffers[name] = self._gpu.allocate(empty.nbytes)
            self._host_outputs[name] = (empty, self._buffers[name])

    def run(self, batch: Any) -> Tuple[Any, Any, Optional[float]]:
        """See HostModel.run. If the batch is below the engine's smallest, results of the other rows are ignored."""
        gpu, count = self._gpu, len(batch)
        shape = (max(count, self._min_batch), *self._shape[1:])
        self._log.clear()
        try:
            gpu.cuda.memcpy_htod_async(self._buffers[self._input], gpu.stage(batch, self._input_dtype), gpu.stream)
            gpu.began.record(gpu.stream)
            accepted = self._calls.enqueue(self._context, self._input, shape, self._addresses, int(gpu.stream.handle))
            gpu.ended.record(gpu.stream)
            if accepted:
                for array, memory in self._host_outputs.values():
                    gpu.cuda.memcpy_dtoh_async(array[:count], memory, gpu.stream)
            gpu.stream.synchronize()  # also after a rejection, because a fault of the device shows here
            device_ms = float(gpu.ended.time_since(gpu.began))
        except gpu.cuda.Error as error:
            raise DeviceFailed(f"the GPU failed while it ran: {error}") from None
        if not accepted:
            raise Refusal("infer-failed", f"TensorRT does not run it: {self._log.reason()}")
        outputs = {name: array[:count].astype("float32", copy=False) for name, (array, _) in self._host_outputs.items()}
        return outputs["logits"], outputs.get("embedding"), device_ms

    def close(self) -> None:
        if self._context is not None:
            self._gpu.scratch.remove(self._context)
        self._calls = self._context = self._engine = None  # the context before its engine
        self._host_outputs = {}
        device_memory, self._buffers = self._buffers, {}
        for memory in device_memory.values():
            self._gpu.free(memory)


def _numpy_name(trt: Any, tensor: Any) -> str:
    """Return the tensor's dtype for numpy; not by trt.nptype, which up to 8.5 fails with numpy 1.24 and later."""
    for kind, name in ((trt.float32, "float32"), (trt.float16, "float16")):
        if tensor.dtype == kind:
            return name
    raise Refusal("load-failed", f"its {tensor.name} is {tensor.dtype}, neither float32 nor float16: export it again")
