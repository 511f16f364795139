"""The engine host: one process that owns the GPU and runs models for the daemon that started it.

It runs under the board's own Python, 3.6 on a Jetson TX2, and imports the standard library and numpy, and on demand
tensorrt with pycuda, or onnxruntime; nothing of jetsel. Started as `INTERPRETER -I host.py --fd N --backend BACKEND`
over an inherited socketpair it answers one message after the other until the peer closes; docs/engine-host.md describes
the messages. `--probe` prints what this interpreter offers instead, as one JSON object.

One thread does everything, so whoever is answered knows that the thread that infers is alive.
"""

import argparse
import collections
import contextlib
import ctypes
import hashlib
import importlib
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

PROTOCOL = 1
MAX_MESSAGE_BYTES = 65536  # the longest honest message is a refusal that quotes a parser, some kilobytes
MAX_TEXT = 2000  # characters of a reason: enough for every line that a person reads
HEADER = struct.Struct("!I")
NEEDED = {"tensorrt": ("numpy", "tensorrt", "pycuda"), "onnxruntime": ("numpy", "onnxruntime")}
PR_SET_PDEATHSIG = 1  # prctl(2)

Progress = Callable[[str, Optional[float]], None]


class Refusal(Exception):
    """What cannot be done: answered as {"ok": false, "code", "message"}; the message names the repair."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Poisoned(Exception):
    """The device failed in a way that this process cannot recover from: it is answered, and the process ends."""


class PeerError(Exception):
    """The peer does not speak the protocol; nothing that it says can be trusted any more."""


# The channel.


class Channel:
    """Messages over the socket: four bytes of length, big-endian, then one JSON object."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._unread = b""

    def receive(self) -> Optional[Dict[str, Any]]:
        """Return the next message, None where the peer has closed; raises PeerError."""
        header = self._read(HEADER.size, may_end=True)
        if header is None:
            return None
        (length,) = HEADER.unpack(header)
        if not 2 <= length <= MAX_MESSAGE_BYTES:
            raise PeerError(f"a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are read")
        body = self._read(length, may_end=False)
        try:
            message = json.loads((body or b"").decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise PeerError(f"a message that is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise PeerError("a message that is no JSON object")
        return message

    def send(self, message: Dict[str, Any]) -> None:
        """Send one message; raises PeerError where the peer is gone."""
        body = json.dumps(message).encode("utf-8")
        try:
            self._socket.sendall(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise PeerError(f"the daemon is gone: {error}") from None

    def _read(self, length: int, may_end: bool) -> Optional[bytes]:
        """Return exactly `length` bytes, however they arrive; None where the peer closed before the first."""
        while len(self._unread) < length:
            try:
                part = self._socket.recv(MAX_MESSAGE_BYTES)  # a whole message, mostly, at once
            except OSError as error:
                raise PeerError(f"the socket broke: {error}") from None
            if not part:
                if may_end and not self._unread:
                    return None
                raise PeerError("the peer closed in the middle of a message")
            self._unread += part
        content, self._unread = self._unread[:length], self._unread[length:]
        return content


# The memory that both sides map.


class Shared:
    """The daemon's memory, mapped here: inputs and outputs pass through it, float32 in C order."""

    def __init__(self, descriptor: int, size: int) -> None:
        import numpy

        self._descriptor = descriptor
        self._numpy = numpy
        self.size = 0
        self.grow(size)

    def grow(self, size: int) -> bool:
        """Map `size` bytes where fewer are mapped; return whether the mapping moved."""
        if size <= self.size:
            return False
        if os.fstat(self._descriptor).st_size < size:
            raise Refusal("bad-request", f"{size} bytes of shared memory were promised; it has fewer")
        self._map = mmap.mmap(self._descriptor, size)  # the former one goes when its last view does
        self._bytes = self._numpy.frombuffer(self._map, dtype=self._numpy.uint8)
        self.address = int(self._bytes.ctypes.data)
        self.size = size
        return True

    def view(self, offset: int, shape: Tuple[int, ...]) -> Any:
        """Return the float32 array that lies at the offset; raises Refusal where it does not lie inside."""
        count = 1
        for length in shape:
            if not isinstance(length, int) or length < 1:
                raise Refusal("bad-request", f"an array of shape {shape}")
            count *= length
        if not isinstance(offset, int) or offset < 0 or offset % 4 or offset + 4 * count > self.size:
            raise Refusal("bad-request", f"an array outside of the {self.size} shared bytes")
        array = self._bytes[offset : offset + 4 * count].view(self._numpy.float32)
        return array.reshape(shape)


# What a backend offers.


class Model:
    """One loaded model. max_batch: images at a time, None without a limit."""

    max_batch = None  # type: Optional[int]
    input_dtype = "float32"
    classes = None  # type: Optional[int]
    embedding_width = None  # type: Optional[int]
    scratch_bytes = None  # type: Optional[int]

    def run(self, batch: Any, shared: Shared) -> Tuple[Any, Any, Optional[float]]:
        """Return logits (n, classes) float32, the embedding (n, width) or None, and the device's own ms or None.

        batch: (n, 3, height, width) float32, a view of the shared memory. The next run may overwrite the arrays.
        Raises Refusal("infer-failed", ...) or Poisoned.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free what it holds."""


class Runtime:
    """One backend and everything that its models share."""

    def describe(self) -> Dict[str, Any]:
        """Return "version", "libraries", "gpu" and "memory" as the reply to hello has them."""
        raise NotImplementedError

    def available_bytes(self) -> Optional[int]:
        """Return the memory that another model could still take."""
        return available_memory_bytes()

    def held_bytes(self) -> Optional[int]:
        """Return a number that grows by what loading a model takes."""
        return resident_bytes()

    def open(self, request: Dict[str, Any], content: bytes, progress: Progress) -> Model:
        """Load one model from its file's content; raises Refusal, or Poisoned."""
        raise NotImplementedError

    def build(
        self, request: Dict[str, Any], shared: Shared, progress: Progress, ask_batch: Callable[[], Any]
    ) -> Dict[str, Any]:
        """Build an engine; raises Refusal, or Poisoned."""
        raise Refusal("unsupported", "this backend runs ONNX files as they are: nothing has to be built")

    def mapped(self, shared: Shared) -> None:
        """Take note of shared memory that was mapped."""

    def unmapping(self, shared: Shared) -> None:
        """Take note of shared memory that is about to go."""

    def close(self) -> None:
        """Free the device."""


def available_memory_bytes() -> Optional[int]:
    """Return what the kernel says could be had without swapping (proc(5), MemAvailable), or None."""
    return _meminfo("MemAvailable:")


def _meminfo(name: str) -> Optional[int]:
    try:
        with Path("/proc/meminfo").open() as lines:
            for line in lines:
                if line.startswith(name):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def resident_bytes() -> Optional[int]:
    """Return this process's resident memory (proc(5), statm), or None."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return None


# ONNX Runtime.


class OnnxRuntime(Runtime):
    """ONNX Runtime on the processor."""

    def __init__(self) -> None:
        # From 1.31 on ONNX Runtime reports to its maker over the network, unless this stands before it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        self._onnxruntime = importlib.import_module("onnxruntime")

    def describe(self) -> Dict[str, Any]:
        """See Runtime.describe."""
        memory = {"total_bytes": _meminfo("MemTotal:"), "available_bytes": self.available_bytes()}
        return {"version": str(self._onnxruntime.__version__), "libraries": {}, "gpu": None, "memory": memory}

    def open(self, request: Dict[str, Any], content: bytes, progress: Progress) -> Model:
        """See Runtime.open."""
        progress("loading", None)
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(request.get("threads") or 1)
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            session = self._onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions share no base but this one; they end here
            raise Refusal("load-failed", f"ONNX Runtime does not load it: {first_line(error)}") from None
        return OnnxModel(session)


class OnnxModel(Model):
    """One session of ONNX Runtime."""

    def __init__(self, session: Any) -> None:
        self._session = session
        inputs, names = session.get_inputs(), [output.name for output in session.get_outputs()]
        if len(inputs) != 1 or inputs[0].type != "tensor(float)" or len(inputs[0].shape) != 4:
            raise Refusal("load-failed", "it must take one float32 input (n, 3, height, width); export it again")
        if "logits" not in names and len(names) != 1:
            raise Refusal("load-failed", "it has no output named logits; export it again")
        logits = "logits" if "logits" in names else names[0]
        self._outputs = [logits] + (["embedding"] if "embedding" in names and logits != "embedding" else [])
        self._input = inputs[0].name
        fixed = inputs[0].shape[0]
        self.max_batch = fixed if isinstance(fixed, int) else None
        if self.max_batch is not None and self.max_batch != 1:
            raise Refusal("load-failed", f"it takes {fixed} images at a time, no fewer: export it with a free batch")

    def run(self, batch: Any, shared: Shared) -> Tuple[Any, Any, Optional[float]]:
        """See Model.run."""
        try:
            found = self._session.run(self._outputs, {self._input: batch})
        except Exception as error:  # as above
            raise Refusal("infer-failed", f"inference failed: {first_line(error)}") from None
        return found[0], found[1] if len(found) > 1 else None, None


# TensorRT section


class TensorRTLog:
    """What TensorRT says: warnings and errors go to the daemon's log, the last error into the next refusal."""

    ERROR, WARNING = 1, 2  # of ILogger::Severity: 0 is an internal error, 3 information, 4 verbose

    def __init__(self) -> None:
        self._error = ""
        self.listen = None  # type: Optional[Callable[[str], Any]]

    def take(self, severity: int, text: str) -> None:
        """Note one line. TensorRT calls this, from any thread, and must not see an exception."""
        line = one_line(text)
        if severity <= self.ERROR:
            self._error = line
        if severity > self.WARNING:
            if self.listen is not None:
                self.listen(line)
            return
        with contextlib.suppress(OSError):  # the log may have gone; the answers have not
            say("TensorRT: " + line)

    def clear(self) -> None:
        """Forget the last error, before something that may fail."""
        self._error = ""

    def why(self) -> str:
        """Return the last error."""
        return self._error or "TensorRT does not say why"

    def logger(self, trt: Any) -> Any:
        """Return the logger that TensorRT wants, which passes everything on."""
        take = self.take

        class Logger(trt.ILogger):  # type: ignore[misc]
            def log(self, severity: Any, msg: str) -> None:
                take(int(severity), msg)

        return Logger()


class Gpu:
    """The first GPU: its context, which belongs to the one thread, one stream, and memory that all models share."""

    def __init__(self, cuda: Any) -> None:
        import numpy

        self.cuda = cuda
        self._numpy = numpy
        try:
            cuda.init()
            self.device = cuda.Device(0)
            # TensorRT's own threads see the primary context alone; a pycuda that is older than it makes a new one.
            if hasattr(self.device, "retain_primary_context"):
                self._context = self.device.retain_primary_context()
                self._context.push()
            else:
                self._context = self.device.make_context()
            self.stream = cuda.Stream()
            self.began, self.ended = cuda.Event(), cuda.Event()
        except cuda.Error as error:
            raise Refusal("unsupported", f"CUDA does not start: {error}; may this account use the GPU?") from None
        self.scratch = Scratch(self)
        self._staging = None  # type: Any
        self._registered = None  # type: Any
        self._first = self._end = 0  # addresses of the registered memory

    def describe(self) -> Dict[str, Any]:
        """Return the "gpu" of the reply to hello."""
        major, minor = self.device.compute_capability()
        return {
            "name": str(self.device.name()),
            "compute_capability": f"{major}.{minor}",
            "memory_bytes": int(self.device.total_memory()),
            "is_integrated": self.is_integrated(),
            # As NVIDIA's support matrices have it. Asking a builder would load hundreds of megabytes of kernels.
            "fast_fp16": (major, minor) in ((5, 3), (6, 0), (6, 2)) or major >= 7,
            "fast_int8": (major, minor) == (6, 1) or major >= 7,
        }

    def is_integrated(self) -> bool:
        """Return whether GPU and processor share their memory, as on every Jetson."""
        return bool(self.device.get_attribute(self.cuda.device_attribute.INTEGRATED))

    def memory(self) -> Tuple[Optional[int], Optional[int]]:
        """Return (available, total) bytes: of the whole board where the memory is shared, else of the GPU."""
        if self.is_integrated():
            return available_memory_bytes(), _meminfo("MemTotal:")
        try:
            free, total = self.cuda.mem_get_info()
        except self.cuda.Error as error:
            raise Poisoned(f"the GPU does not say how much memory is free: {error}") from None
        return int(free), int(total)

    def allocate(self, size_bytes: int) -> Any:
        """Return device memory, aligned to 256 bytes as cuMemAlloc has it; raises Refusal where there is too little."""
        try:
            return self.cuda.mem_alloc(size_bytes)
        except self.cuda.MemoryError as error:
            message = "the GPU has no {} bytes left ({}): serve fewer or smaller models ([models] only)"
            raise Refusal("load-failed", message.format(size_bytes, error)) from None

    def free(self, memory: Any) -> None:
        """Free device memory; a GPU that failed frees everything when the process ends."""
        try:
            memory.free()
        except self.cuda.Error as error:
            say(f"GPU memory was not freed: {error}")

    def register(self, shared: Shared) -> None:
        """Page-lock the shared memory where the board can (a TX2 cannot), so that inputs are copied from it at once."""
        self.unregister()
        asked = getattr(self.cuda.device_attribute, "HOST_REGISTER_SUPPORTED", None)
        if asked is not None and not self.device.get_attribute(asked):
            return
        try:
            self._registered = self.cuda.register_host_memory(shared.view(0, (shared.size // 4,)))
        except self.cuda.Error:
            return  # staging takes over
        self._first, self._end = shared.address, shared.address + shared.size

    def unregister(self) -> None:
        """Let go of the shared memory."""
        registered, self._registered, self._first, self._end = self._registered, None, 0, 0
        if registered is not None:
            try:
                registered.base.unregister()
            except self.cuda.Error as error:
                say(f"shared memory was not unregistered: {error}")

    def source(self, batch: Any, dtype: str) -> Any:
        """Return page-locked memory that holds the batch: itself where it can be read in place, else a copy."""
        if dtype == "float32" and self._first <= int(batch.ctypes.data) < self._end:
            return batch
        size_bytes = batch.size * self._numpy.dtype(dtype).itemsize
        if self._staging is None or self._staging.nbytes < size_bytes:
            self._staging = self.cuda.pagelocked_empty(size_bytes, self._numpy.uint8)
        copy = self._staging[:size_bytes].view(dtype).reshape(batch.shape)
        copy[...] = batch
        return copy

    def close(self) -> None:
        """Leave the context, after all that lives in it."""
        self.unregister()
        self.scratch.close()
        self._staging = None
        del self.began, self.ended, self.stream
        try:
            self._context.pop()
            self._context.detach()
        except self.cuda.Error as error:
            say(f"the CUDA context was not left: {error}")


class Scratch:
    """One buffer of scratch memory for all engines, as large as the largest wants: they run one at a time."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._contexts = []  # type: List[Any]
        self._memory = None  # type: Any
        self._size = 0

    def lend(self, context: Any, size_bytes: int) -> None:
        """Give a context the buffer, larger than before where it has to be; raises Refusal."""
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

    def take_back(self, context: Any) -> None:
        """Forget a context; the last one takes the buffer with it."""
        self._contexts = [other for other in self._contexts if other is not context]
        if not self._contexts:
            self.close()

    def close(self) -> None:
        """Free the buffer."""
        memory, self._memory, self._size = self._memory, None, 0
        if memory is not None:
            self._gpu.free(memory)

    def _set(self, context: Any) -> None:
        address = int(self._memory)
        if hasattr(context, "set_device_memory"):
            context.set_device_memory(address, self._size)
            return
        try:
            context.device_memory = address
        except TypeError:  # up to 8.4 it takes a C pointer alone, which in Python is a capsule
            capsule = ctypes.pythonapi.PyCapsule_New
            capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            context.device_memory = capsule(address, None, None)


Tensor = collections.namedtuple("Tensor", "name is_input shape dtype")  # shape: -1 for an extent that varies


class ByBinding:
    """How TensorRT 8.0 to 8.4 speaks of an engine's tensors: by the index of a binding."""

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
        """Return the smallest, best and largest shape of an input."""
        return self._engine.get_profile_shape(0, self._index(name))

    def enqueue(self, context: Any, name: str, shape: Tuple[int, ...], addresses: Dict[str, int], stream: int) -> bool:
        """Queue one run for this shape of the input of this name; return whether TensorRT took it."""
        if not context.set_binding_shape(self._index(name), shape):
            return False
        return bool(context.execute_async_v2([addresses[tensor.name] for tensor in self.tensors], stream))

    def _index(self, name: str) -> int:
        return [tensor.name for tensor in self.tensors].index(name)


class ByName:
    """How TensorRT 8.5 and later speaks of an engine's tensors: by name. See ByBinding."""

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
        """See ByBinding.profile."""
        return self._engine.get_tensor_profile_shape(name, 0)

    def enqueue(self, context: Any, name: str, shape: Tuple[int, ...], addresses: Dict[str, int], stream: int) -> bool:
        """See ByBinding.enqueue."""
        placed = all(context.set_tensor_address(tensor, address) for tensor, address in addresses.items())
        return bool(placed and context.set_input_shape(name, shape) and context.execute_async_v3(stream))


class TensorRTModel(Model):
    """One engine: its context, its memory on the GPU, and page-locked memory for its answers."""

    def __init__(self, trt: Any, gpu: Gpu, log: TensorRTLog, engine: Any, input_px: List[int]) -> None:
        self._gpu, self._log, self._engine = gpu, log, engine
        self._calls = ByName(engine, trt) if hasattr(engine, "num_io_tensors") else ByBinding(engine)  # type: Any
        self._device = {}  # type: Dict[str, Any]
        self._answers = {}  # type: Dict[str, Tuple[Any, Any]]
        self._context = None  # type: Any
        try:
            self._check_input(trt, [3, *input_px])
            outputs = self._outputs(trt)
            self._create_context(trt)
            self._allocate(trt, outputs)
        except BaseException:
            self.close()
            raise
        self._addresses = {name: int(memory) for name, memory in self._device.items()}

    def _check_input(self, trt: Any, expected: List[int]) -> None:
        """Take over the input's name, type and batch; raises Refusal where it is not the input that the model has."""
        inputs = [tensor for tensor in self._calls.tensors if tensor.is_input]
        if len(inputs) != 1 or list(inputs[0].shape[1:]) != expected:
            said, wanted = [tensor.shape for tensor in inputs], ["n", *expected]
            raise Refusal("load-failed", f"its inputs are {said}, not one {wanted}: build it again")
        self._input, self._shape = inputs[0].name, inputs[0].shape
        self.input_dtype = _numpy_name(trt, inputs[0])
        self._least = self.max_batch = self._shape[0]
        if self._shape[0] < 0:
            least, _, most = self._calls.profile(self._input)
            self._least, self.max_batch = int(least[0]), int(most[0])

    def _outputs(self, trt: Any) -> Dict[str, Any]:
        """Return {"logits": Tensor}, with "embedding" where it has one; raises Refusal."""
        outputs = {tensor.name: tensor for tensor in self._calls.tensors if not tensor.is_input}
        roles = {name if len(outputs) > 1 else "logits": name for name in outputs}
        shapes = {name: tensor.shape for name, tensor in outputs.items()}
        are_rows = all(len(shape) == 2 and shape[0] == self._shape[0] and shape[1] > 0 for shape in shapes.values())
        if not are_rows or not {"logits"} <= set(roles) <= {"logits", "embedding"}:
            message = "its outputs are {}: export it with logits (n, classes), and embedding (n, width) if it has one"
            raise Refusal("load-failed", message.format(shapes))
        return {role: outputs[name] for role, name in roles.items()}

    def _create_context(self, trt: Any) -> None:
        """Make the execution context, on the scratch memory that all share."""
        self._log.clear()
        engine, size_bytes = self._engine, getattr(self._engine, "device_memory_size_v2", None)
        self.scratch_bytes = int(engine.device_memory_size if size_bytes is None else size_bytes)
        strategies = getattr(trt, "ExecutionContextAllocationStrategy", None)  # type: Any
        if hasattr(strategies, "USER_MANAGED"):
            self._context = engine.create_execution_context(strategies.USER_MANAGED)
        else:
            self._context = engine.create_execution_context_without_device_memory()
        if self._context is None:
            raise Refusal("load-failed", f"TensorRT makes no context for it: {self._log.why()}")
        self._gpu.scratch.lend(self._context, self.scratch_bytes)

    def _allocate(self, trt: Any, outputs: Dict[str, Any]) -> None:
        import numpy

        rows = self.max_batch or 1
        image = numpy.empty(self._shape[1:], self.input_dtype)
        self._device[self._input] = self._gpu.allocate(rows * image.nbytes)
        for role, tensor in outputs.items():
            empty = self._gpu.cuda.pagelocked_empty((rows, tensor.shape[1]), numpy.dtype(_numpy_name(trt, tensor)))
            self._device[tensor.name] = self._gpu.allocate(empty.nbytes)
            self._answers[role] = (empty, self._device[tensor.name])

    def run(self, batch: Any, shared: Shared) -> Tuple[Any, Any, Optional[float]]:
        """See Model.run. A batch smaller than the engine's is run as its first rows; each row is a photograph's own."""
        gpu, count = self._gpu, len(batch)
        shape = (max(count, self._least), *self._shape[1:])
        self._log.clear()
        try:
            gpu.cuda.memcpy_htod_async(self._device[self._input], gpu.source(batch, self.input_dtype), gpu.stream)
            gpu.began.record(gpu.stream)
            taken = self._calls.enqueue(self._context, self._input, shape, self._addresses, int(gpu.stream.handle))
            gpu.ended.record(gpu.stream)
            if taken:
                for answer, memory in self._answers.values():
                    gpu.cuda.memcpy_dtoh_async(answer[:count], memory, gpu.stream)
            gpu.stream.synchronize()  # also where it was not taken: a fault of the device shows here
            device_ms = float(gpu.ended.time_since(gpu.began))
        except gpu.cuda.Error as error:
            raise Poisoned(f"the GPU failed while it ran: {error}") from None
        if not taken:
            raise Refusal("infer-failed", f"TensorRT does not run it: {self._log.why()}")
        found = {role: answer[:count].astype("float32", copy=False) for role, (answer, _) in self._answers.items()}
        return found["logits"], found.get("embedding"), device_ms

    def close(self) -> None:
        """See Model.close."""
        if self._context is not None:
            self._gpu.scratch.take_back(self._context)
        self._calls = self._context = self._engine = None  # the context before its engine
        self._answers = {}
        device, self._device = self._device, {}
        for memory in device.values():
            self._gpu.free(memory)


def _numpy_name(trt: Any, tensor: Any) -> str:
    # trt.nptype would say it, but up to 8.5 it stumbles over a numpy from 1.24 on.
    for known, name in ((trt.float32, "float32"), (trt.float16, "float16")):
        if tensor.dtype == known:
            return name
    message = "its {} is {}, neither float32 nor float16: export it again"
    raise Refusal("load-failed", message.format(tensor.name, tensor.dtype))


class BuildWatch:
    """Passes on how far a build is: twice a second, from the building thread only, raising nothing into TensorRT."""

    INTERVAL_S = 0.5

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._thread = threading.get_ident()
        self._next = 0.0
        self._share = 0.0
        self._phases = {}  # type: Dict[str, List[Any]]
        self.failure = None  # type: Optional[BaseException]

    def tell(self, stage: str, share: Optional[float]) -> bool:
        """Pass on a stage; return whether the build should go on."""
        now = time.monotonic()
        if self.failure is None and now >= self._next and threading.get_ident() == self._thread:
            self._next = now + self.INTERVAL_S
            self.guard(lambda: self._progress(stage[:100], share))
        return self.failure is None

    def guard(self, call: Callable[[], Any]) -> Any:
        """Return what the call does; keep what it raises, for after the build, and return None."""
        try:
            return call() if self.failure is None else None
        except Exception as error:  # whatever it is, it may not pass through TensorRT
            self.failure = error
            return None

    def step(self, phase: str, step: int) -> bool:
        """Take note of a step; return whether the build should go on."""
        known = self._phases.get(phase)
        if known is not None:
            known[2] = step + 1
        share, name = 0.0, phase  # type: float, Optional[str]
        while name in self._phases:  # a step's share of its phase is a share of one step of the phase around it
            name, steps, done = self._phases[name]
            share = min((done + share) / max(steps, 1), 1.0)
        self._share = max(self._share, share)
        return self.tell("building: " + phase, self._share)

    def monitor(self, trt: Any) -> Any:
        """Return the monitor that TensorRT 10 and later reports to."""
        phases, step = self._phases, self.step

        class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
            def phase_start(self, phase_name: str, parent_phase: Optional[str], num_steps: int) -> None:
                phases[phase_name] = [parent_phase, num_steps, 0]

            def step_complete(self, phase_name: str, step_number: int) -> bool:
                return step(phase_name, step_number)

            def phase_finish(self, phase_name: str) -> None:
                phases.pop(phase_name, None)

        return Monitor()


class Calibration:
    """Feeds an INT8 calibration with batches of photographs, through one buffer on the GPU, or from its cache."""

    def __init__(self, gpu: Gpu, watch: BuildWatch, ask_batch: Callable[[], Any], shape: List[int]) -> None:
        import numpy

        self._numpy, self._gpu, self._watch, self._ask = numpy, gpu, watch, ask_batch
        self._held = numpy.empty(shape, numpy.float32)
        self._memory = gpu.allocate(self._held.nbytes)
        self._batches = self._gather()
        self.images = 0
        self.table = None  # type: Optional[bytes]

    def _gather(self) -> Iterator[None]:
        """Fill the held batch again and again from what is asked for; a last, smaller one repeats its photographs."""
        count, photographs = 0, self._ask()
        while photographs is not None:
            for photograph in photographs:
                self._held[count] = photograph
                self.images += 1
                count += 1
                if count == len(self._held):
                    count = 0
                    yield
            photographs = self._ask()
        if count:
            self._held[count:] = self._held[self._numpy.arange(len(self._held) - count) % count]
            yield

    def next(self) -> Optional[List[int]]:
        """Copy the next batch to the GPU and return its address in a list; None at the end."""
        try:
            next(self._batches)
        except StopIteration:
            return None
        self._gpu.cuda.memcpy_htod(self._memory, self._held)
        self._watch.tell(f"calibrating with {self.images} photographs", None)
        return [int(self._memory)]

    def calibrator(self, trt: Any) -> Any:
        """Return the calibrator that TensorRT asks."""
        calibration, guard = self, self._watch.guard

        class Calibrator(trt.IInt8EntropyCalibrator2):  # type: ignore[misc]
            def get_batch_size(self) -> int:
                return len(calibration._held)

            def get_batch(self, names: List[str]) -> Any:
                return guard(calibration.next)

            def read_calibration_cache(self) -> Optional[bytes]:
                return calibration.table

            def write_calibration_cache(self, cache: Any) -> None:
                calibration.table = bytes(cache)

        return Calibrator()

    def close(self) -> None:
        """Free the buffer."""
        self._gpu.free(self._memory)


class EngineBuild:
    """One engine out of one ONNX file, by the calls that this TensorRT has."""

    def __init__(
        self, trt: Any, gpu: Gpu, log: TensorRTLog, logger: Any, request: Dict[str, Any], watch: BuildWatch
    ) -> None:
        self._trt, self._gpu, self._log, self._logger = trt, gpu, log, logger
        self._request, self._watch = request, watch
        self._calibration = None  # type: Optional[Calibration]
        self.notes = []  # type: List[str]

    def run(self, ask_batch: Callable[[], Any]) -> Dict[str, Any]:
        """Build, write the plan, and return the reply; raises Refusal."""
        began = time.monotonic()
        self._log.clear()
        try:
            self._builder = self._trt.Builder(self._logger)
        except TypeError as error:  # so pybind says that TensorRT returned nothing
            raise Refusal("build-failed", f"TensorRT makes no builder: {self._log.why()} ({error})") from None
        self._config = self._builder.create_builder_config()
        network = self._parse()
        shape = self._profile(network)
        try:
            self._precision(ask_batch, shape)
            self._limit_workspace()
            cache = self._timing_cache()
            plan = self._built(network)
            table = self._calibration.table if self._calibration else None
        finally:
            if self._calibration is not None:
                self._calibration.close()
        self._save("timing_cache", self._timings(cache))
        self._save("calibration_cache", table)
        _write_aside(str(self._request["plan"]), plan)
        return {
            "plan_bytes": len(plan),
            "sha256": hashlib.sha256(plan).hexdigest(),
            "build_s": time.monotonic() - began,
            "layers": int(network.num_layers),
            "max_batch": shape[0],
            "calibration_images": self._calibration.images if self._calibration else None,
            "notes": self.notes,
        }

    def _parse(self) -> Any:
        flags, kinds = 0, self._trt.NetworkDefinitionCreationFlag
        if hasattr(kinds, "EXPLICIT_BATCH"):
            flags |= 1 << int(kinds.EXPLICIT_BATCH)
        if self._is_typed():
            flags |= 1 << int(kinds.STRONGLY_TYPED)
        network = self._builder.create_network(flags)
        parser = self._trt.OnnxParser(network, self._logger)
        if not parser.parse(_read_file(str(self._request["onnx"]), None)):
            errors = [str(parser.get_error(index).desc()) for index in range(parser.num_errors)]
            raise Refusal("build-failed", "TensorRT does not take this ONNX file: {}".format("; ".join(errors)))
        return network

    def _is_typed(self) -> bool:
        """Return whether the types that the ONNX file has are to be kept: of one in FP16, where TensorRT can."""
        can = hasattr(self._trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED")
        return can and self._request["precision"] == "fp16" and bool(self._request.get("is_half"))

    def _profile(self, network: Any) -> List[int]:
        """Return the largest input; where the batch is free, add a profile from one image to as many as asked for."""
        if network.num_inputs != 1:
            raise Refusal("build-failed", f"it has {network.num_inputs} inputs instead of one: export it")
        given = network.get_input(0)
        shape, wanted = list(given.shape), [3, *self._request["input_px"]]
        if len(shape) != 4 or any(has not in (-1, wants) for has, wants in zip(shape[1:], wanted)):
            raise Refusal("build-failed", f"its input is {shape}, not {wanted} after the batch: export it")
        if -1 not in shape:
            return [int(extent) for extent in shape]
        most = int(self._request["max_batch"]) if shape[0] == -1 else int(shape[0])
        least = 1 if shape[0] == -1 else most
        profile = self._builder.create_optimization_profile()
        profile.set_shape(given.name, (least, *wanted), (most, *wanted), (most, *wanted))
        if self._config.add_optimization_profile(profile) < 0:
            raise Refusal("build-failed", f"TensorRT does not take a batch of {most}: {self._log.why()}")
        return [most, *wanted]

    def _precision(self, ask_batch: Callable[[], Any], shape: List[int]) -> None:
        """Set what the precision needs; raises Refusal where this TensorRT or GPU has no such thing."""
        precision = self._request["precision"]
        if precision == "int8":
            self._int8(ask_batch, shape)
        elif precision == "fp16" and not self._is_typed():
            if not self._set_flag("FP16"):
                raise Refusal(
                    "unsupported",
                    f"TensorRT {self._trt.__version__} builds FP16 from an ONNX file in FP16 alone, and this one is in "
                    "FP32: pip install 'jetsel[tensorrt]' brings what converts it; or set [host] precision to fp32",
                )
            if not getattr(self._builder, "platform_has_fast_fp16", True):
                self.notes.append("this GPU is not fast in FP16: fp32 may be as good")

    def _int8(self, ask_batch: Callable[[], Any], shape: List[int]) -> None:
        has_qdq = bool(self._request.get("has_qdq"))
        calibrates = hasattr(self._trt, "IInt8EntropyCalibrator2")
        # TensorRT 11 no longer says: whatever it runs on is fast.
        if not getattr(self._builder, "platform_has_fast_int8", True):
            raise Refusal("unsupported", "this GPU has no fast INT8: set [host] precision to fp16")
        if not has_qdq and not calibrates:
            raise Refusal(
                "unsupported",
                f"TensorRT {self._trt.__version__} does not calibrate: INT8 needs an ONNX file with Q/DQ nodes "
                "(quantise it with ONNX Runtime or NVIDIA's ModelOpt), or set [host] precision to fp16",
            )
        self._set_flag("INT8")
        if getattr(self._builder, "platform_has_fast_fp16", False):
            self._set_flag("FP16")  # for the layers that have no INT8 form
        if not has_qdq:
            self._calibration = Calibration(self._gpu, self._watch, ask_batch, shape)
            self._calibration.table = _content(self._request.get("calibration_cache"))
            self._config.int8_calibrator = self._calibrator = self._calibration.calibrator(self._trt)

    def _set_flag(self, name: str) -> bool:
        flag = getattr(self._trt.BuilderFlag, name, None)
        if flag is not None:
            self._config.set_flag(flag)
        return flag is not None

    def _limit_workspace(self) -> None:
        size_bytes = int(self._request["workspace_bytes"])
        if hasattr(self._config, "set_memory_pool_limit"):
            self._config.set_memory_pool_limit(self._trt.MemoryPoolType.WORKSPACE, size_bytes)
        else:
            self._config.max_workspace_size = size_bytes

    def _timing_cache(self) -> Any:
        """Use the timings of earlier builds; those that TensorRT refuses are replaced. Return the cache or None."""
        path = self._request.get("timing_cache")
        if path is None:
            return None
        for content in (_content(path) or b"", b""):
            cache = self._config.create_timing_cache(content)
            if cache is not None and self._config.set_timing_cache(cache, False):
                return cache
            self.notes.append(f"the timing cache {path} was of no use here and is replaced")
            self._log.clear()
        return None

    def _timings(self, cache: Any) -> Optional[bytes]:
        found = None if cache is None else self._config.get_timing_cache()
        memory = None if found is None else found.serialize()
        return None if memory is None else bytes(memory)

    def _built(self, network: Any) -> bytes:
        """Return the plan; a build that fails without cuDNN and cuBLAS is tried again with them."""
        if hasattr(self._config, "progress_monitor"):
            self._monitor = self._watch.monitor(self._trt)  # kept: TensorRT does not
            self._config.progress_monitor = self._monitor
        else:
            self._log.listen = lambda line: self._watch.tell("building: " + line, None)
        everything = self._exclude_libraries()
        try:
            plan = self._attempt(network)
            if plan is None and everything is not None and self._watch.failure is None:
                self.notes.append("built with cuDNN and cuBLAS: without them TensorRT finds no engine")
                self._config.set_tactic_sources(everything)
                plan = self._attempt(network)
        finally:
            self._log.listen = None
        if self._watch.failure is not None:
            raise self._watch.failure
        if plan is None:
            message = "TensorRT builds no engine: {}; where it is short of memory, see [host] workspace_mb"
            raise Refusal("build-failed", message.format(self._log.why()))
        return plan

    def _exclude_libraries(self) -> Optional[int]:
        """Do without the hundreds of megabytes of cuDNN and cuBLAS where asked to; return the tactics from before."""
        if not (self._request.get("options") or {}).get("lean_tactics"):
            return None
        kinds = self._trt.TacticSource
        libraries = [getattr(kinds, name) for name in ("CUBLAS", "CUBLAS_LT", "CUDNN") if hasattr(kinds, name)]
        everything = lean = int(self._config.get_tactic_sources())
        for library in libraries:
            lean &= ~(1 << int(library))
        return everything if self._config.set_tactic_sources(lean) else None

    def _attempt(self, network: Any) -> Optional[bytes]:
        if hasattr(self._builder, "build_serialized_network"):
            memory = self._builder.build_serialized_network(network, self._config)
        else:
            engine = self._builder.build_engine(network, self._config)
            memory = None if engine is None else engine.serialize()
        return None if memory is None else bytes(memory)

    def _save(self, what: str, content: Optional[bytes]) -> None:
        """Keep a cache for the next build, for which it is a help and no condition."""
        path = self._request.get(what)
        if path is None or content is None:
            return
        try:
            _write_aside(str(path), content)
        except Refusal as refusal:
            self.notes.append(str(refusal))


def _content(path: Any) -> Optional[bytes]:
    """Return a file's content; None where there is no such file."""
    try:
        return Path(path).read_bytes() if path is not None else None
    except OSError:
        return None


def _write_aside(path: str, content: bytes) -> None:
    """Write a file whole or not at all; raises Refusal."""
    aside = Path(f"{path}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise Refusal("build-failed", f"{path} cannot be written: {error.strerror}") from None


class TensorRTRuntime(Runtime):
    """TensorRT on the first GPU, in one CUDA context that the host's only thread owns."""

    def __init__(self) -> None:
        self._trt = importlib.import_module("tensorrt")  # type: Any
        self._pycuda = importlib.import_module("pycuda")  # type: Any
        self._gpu = Gpu(importlib.import_module("pycuda.driver"))
        self._log = TensorRTLog()
        self._logger = self._log.logger(self._trt)
        try:
            self._trt.init_libnvinfer_plugins(self._logger, "")
            self._runtime = self._trt.Runtime(self._logger)
        except TypeError as error:  # so pybind says that TensorRT returned nothing
            self._gpu.close()
            raise Refusal("unsupported", f"TensorRT does not start: {self._log.why()} ({error})") from None

    def describe(self) -> Dict[str, Any]:
        """See Runtime.describe."""
        available, total = self._gpu.memory()
        version = ".".join(str(part) for part in self._gpu.cuda.get_version()[:2])
        return {
            "version": str(self._trt.__version__),
            "libraries": {"pycuda": str(self._pycuda.VERSION_TEXT), "cuda": version},
            "gpu": self._gpu.describe(),
            "memory": {"total_bytes": total, "available_bytes": available},
        }

    def available_bytes(self) -> Optional[int]:
        """See Runtime.available_bytes."""
        return self._gpu.memory()[0]

    def held_bytes(self) -> Optional[int]:
        """See Runtime.held_bytes: an engine's memory is the GPU's, so it is what the others no longer have."""
        available, total = self._gpu.memory()
        return None if available is None or total is None else total - available

    def open(self, request: Dict[str, Any], content: bytes, progress: Progress) -> Model:
        """See Runtime.open."""
        self._check_made_for(request)
        progress("loading", None)
        self._log.clear()
        cuda = self._gpu.cuda
        try:
            engine = self._runtime.deserialize_cuda_engine(content)
            if engine is None:
                message = "TensorRT {} does not load it: {}; build it again: jetsel models build {}"
                raise Refusal("load-failed", message.format(self._trt.__version__, self._log.why(), request["name"]))
            return TensorRTModel(self._trt, self._gpu, self._log, engine, request["input_px"])
        except cuda.MemoryError as error:
            raise Refusal("load-failed", f"the GPU's memory is full ({error}): serve fewer models") from None
        except cuda.Error as error:
            raise Poisoned(f"the GPU failed while it loaded: {error}") from None
        except RuntimeError as error:  # so pybind passes on what TensorRT throws
            raise Refusal("load-failed", f"TensorRT does not load it: {first_line(error)}") from None

    def _check_made_for(self, request: Dict[str, Any]) -> None:
        """Raise Refusal where the plan was built by another TensorRT or for another GPU: it might even run, wrongly."""
        theirs = request.get("made_for")
        if theirs is None:
            return
        gpu = self._gpu.describe()
        ours = {"tensorrt": str(self._trt.__version__)}
        ours.update(gpu=gpu["name"], compute_capability=gpu["compute_capability"])
        if any(theirs.get(name) != ours[name] for name in ours):
            text = "TensorRT {0[tensorrt]} and {0[gpu]} ({0[compute_capability]})".format
            sides = f"it was built for {text({**dict.fromkeys(ours), **theirs})}, and this is {text(ours)}"
            raise Refusal("mismatch", f"{sides}: run jetsel models build {request['name']}")

    def build(
        self, request: Dict[str, Any], shared: Shared, progress: Progress, ask_batch: Callable[[], Any]
    ) -> Dict[str, Any]:
        """See Runtime.build."""
        watch = BuildWatch(progress)
        watch.tell("reading the network", None)
        cuda = self._gpu.cuda
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # calibrators and flags where nothing else is
                return EngineBuild(self._trt, self._gpu, self._log, self._logger, request, watch).run(ask_batch)
        except cuda.Error as error:
            raise Poisoned(f"the GPU failed during the build: {error}") from None
        except RuntimeError as error:  # as above
            raise Refusal("build-failed", f"TensorRT failed: {first_line(error)}") from None

    def mapped(self, shared: Shared) -> None:
        """See Runtime.mapped."""
        self._gpu.register(shared)

    def unmapping(self, shared: Shared) -> None:
        """See Runtime.unmapping."""
        self._gpu.unregister()

    def close(self) -> None:
        """See Runtime.close."""
        self._runtime = None
        self._gpu.close()


# Requests.


class Host:
    """Everything that is loaded, and the answer to each kind of message."""

    def __init__(self, backend: str, channel: Channel) -> None:
        self._channel = channel
        self._backend = backend
        self._runtime = None  # type: Optional[Runtime]
        self._shared = None  # type: Optional[Shared]
        self._models = {}  # type: Dict[int, Model]
        self._loaded = {}  # type: Dict[int, Dict[str, Any]]
        self._reserve_bytes = 0
        self._request_id = None  # type: Any
        self._kinds = {
            "hello": self._hello,
            "load": self._load,
            "unload": self._unload,
            "infer": self._infer,
            "build": self._build,
            "ping": lambda _: {},
            "quit": lambda _: {},
        }  # type: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]]

    def serve(self) -> int:
        """Answer messages until the peer closes or says quit; return the exit status."""
        try:
            while True:
                request = self._channel.receive()
                if request is None:
                    return 0
                status = self._answer(request)
                if status is not None:
                    return status
        except PeerError as error:
            say(f"leaving: {error}")
            return 1
        finally:
            self._close()

    def _answer(self, request: Dict[str, Any]) -> Optional[int]:
        """Answer one request; return the exit status where it was the last."""
        self._request_id = request.get("id")
        kind = request.get("do")
        status = None
        try:
            if not isinstance(kind, str) or kind not in self._kinds:
                raise Refusal("bad-request", "{!r} is none of {}".format(kind, ", ".join(sorted(self._kinds))))
            reply = dict(self._kinds[kind](request), ok=True)
            status = 0 if kind == "quit" else None
        except Refusal as refusal:
            reply = {"ok": False, "code": refusal.code, "message": one_line(str(refusal))}
        except Poisoned as error:
            say(f"the device failed: {error}")
            reply = {"ok": False, "code": "poisoned", "message": one_line(str(error))}
            status = 3
        except PeerError:
            raise
        except Exception as error:  # the net: a request that is wrong in a way not thought of fails alone
            traceback.print_exc()
            reply = {"ok": False, "code": "internal", "message": one_line(f"{type(error).__name__}: {error}")}
        reply["id"] = self._request_id
        self._channel.send(reply)
        return status

    def _progress(self, stage: str, share: Optional[float]) -> None:
        self._channel.send({"id": self._request_id, "progress": {"stage": one_line(stage), "share": share}})

    def _hello(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if self._runtime is not None:
            raise Refusal("bad-request", "hello was said already")
        self._shared = Shared(_whole(request, "memory_fd"), _whole(request, "memory_bytes"))
        self._reserve_bytes = _whole(request, "reserve_bytes")
        try:
            runtime = RUNTIMES[self._backend]()
        except ImportError as error:
            said = f"{sys.executable} lacks what {self._backend} needs: {error}"
            raise Refusal("unsupported", said) from None
        runtime.mapped(self._shared)
        self._runtime = runtime
        import numpy

        found = runtime.describe()
        found["libraries"] = dict(found["libraries"], numpy=str(numpy.__version__))
        about = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "backend": self._backend,
        }
        return dict(found, **about)

    def _load(self, request: Dict[str, Any]) -> Dict[str, Any]:
        runtime, shared = self._started(request)
        key = _whole(request, "model")
        if key in self._loaded:  # asked for twice around a restart: the answer is the same
            return self._loaded[key]
        content = _read_file(str(request.get("path")), request.get("sha256"))
        self._check_reserve(max(len(content), int(request.get("expected_bytes") or 0)), "before it was loaded")
        before = runtime.held_bytes()
        model = runtime.open(request, content, self._progress)
        del content
        try:
            self._progress("warming up", None)
            run_ms = _warm_up(model, shared, request)
            after = runtime.held_bytes()
            available = self._check_reserve(0, "once it was loaded")
        except BaseException:
            model.close()
            raise
        self._models[key] = model
        self._loaded[key] = {
            "max_batch": model.max_batch,
            "input_dtype": model.input_dtype,
            "classes": model.classes,
            "embedding_width": model.embedding_width,
            "scratch_bytes": model.scratch_bytes,
            "cost_bytes": _grown(before, after),
            "available_bytes": available,
            "run_ms": run_ms,
        }
        return self._loaded[key]

    def _check_reserve(self, more_bytes: int, when: str) -> Optional[int]:
        """Return what is available; raises Refusal where less than the reserve would be left."""
        available = self._runtime.available_bytes() if self._runtime else None
        if available is not None and available - more_bytes < self._reserve_bytes:
            left_mb, reserve_mb = (available - more_bytes) / 1e6, self._reserve_bytes / 1e6
            raise Refusal(
                "memory-reserve",
                f"{left_mb:.0f} MB would be left {when}, less than the reserve of {reserve_mb:.0f} MB: "
                "serve fewer or smaller models ([models] only), or lower [host] reserve_mb",
            )
        return available

    def _unload(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self._model(request).close()
        del self._models[request["model"]], self._loaded[request["model"]]
        return {}

    def _infer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        began = time.perf_counter()
        _, shared = self._started(request)
        model = self._model(request)
        given, out = request["input"], request["output"]
        batch = shared.view(given["offset"], tuple(given["shape"]))
        if model.max_batch is not None and len(batch) > model.max_batch:
            raise Refusal("bad-request", f"{len(batch)} images; it takes {model.max_batch} at a time")
        logits, embedding, device_ms = model.run(batch, shared)
        end = out["offset"] + out["bytes"]
        written = {}  # type: Dict[str, Any]
        offset = out["offset"]
        for name, array in (("logits", logits), ("embedding", embedding)):
            if array is None:
                written[name] = None
                continue
            if array.ndim != 2 or len(array) != len(batch):
                raise Refusal("bad-output", f"{name} of shape {array.shape} for {len(batch)} images")
            if offset + 4 * array.size > end:
                raise Refusal("bad-output", f"{name} of shape {array.shape} is larger than it was said")
            shared.view(offset, array.shape)[:] = array
            written[name] = {"offset": offset, "shape": list(array.shape)}
            offset += 4 * array.size
        wall_ms = (time.perf_counter() - began) * 1e3
        return dict(written, device_ms=device_ms, wall_ms=wall_ms)

    def _build(self, request: Dict[str, Any]) -> Dict[str, Any]:
        runtime, shared = self._started(request)
        return runtime.build(request, shared, self._progress, lambda: self._ask_batch(request, shared))

    def _ask_batch(self, request: Dict[str, Any], shared: Shared) -> Any:
        """Return the next batch of photographs to calibrate with, (k, 3, height, width) float32; None at their end."""
        given = request["input"]
        self._channel.send(
            {"id": self._request_id, "need": "calibration", "offset": given["offset"], "bytes": given["bytes"]}
        )
        reply = self._channel.receive()
        if reply is None or reply.get("id") != self._request_id or "count" not in reply:
            raise PeerError("photographs to calibrate with were asked for, and something else came")
        return shared.view(given["offset"], tuple(reply["shape"])) if reply["count"] else None

    def _started(self, request: Dict[str, Any]) -> Tuple[Runtime, Shared]:
        if self._runtime is None or self._shared is None:
            raise Refusal("bad-request", "hello comes first")
        size = request.get("memory_bytes")
        if isinstance(size, int) and size > self._shared.size:
            self._runtime.unmapping(self._shared)
            self._shared.grow(size)
            self._runtime.mapped(self._shared)
        return self._runtime, self._shared

    def _model(self, request: Dict[str, Any]) -> Model:
        found = self._models.get(request.get("model"))  # type: ignore[arg-type]
        if found is None:
            raise Refusal("bad-request", "model {!r} is not loaded".format(request.get("model")))
        return found

    def _close(self) -> None:
        for model in self._models.values():
            model.close()
        if self._runtime is not None:
            if self._shared is not None:
                self._runtime.unmapping(self._shared)
            self._runtime.close()


def _grown(before: Optional[int], after: Optional[int]) -> Optional[int]:
    """Return by how much; None where it is not known, or other programs have given back more than that meanwhile."""
    return after - before if before is not None and after is not None and after > before else None


def _whole(request: Dict[str, Any], name: str) -> int:
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal("bad-request", f"{name}: {value!r} is no whole number")
    return value


def _read_file(path: str, sha256: Any) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Refusal("load-failed", f"{path} cannot be read: {error.strerror}") from None
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise Refusal("mismatch", f"{path} is not the file that it was: copy or build it again")
    return content


def _warm_up(model: Model, shared: Shared, request: Dict[str, Any]) -> float:
    """Run a fixed pattern twice, take over what the outputs say and refuse those of no use; return a run's ms."""
    import numpy

    height, width = request["input_px"]
    pattern = numpy.linspace(-2.0, 2.0, 3 * height * width, dtype=numpy.float32).reshape(1, 3, height, width)
    for _ in range(2):  # the first run is never the usual one
        began = time.perf_counter()
        logits, embedding, _ = model.run(pattern, shared)
        run_ms = (time.perf_counter() - began) * 1e3
    if logits.ndim != 2 or len(logits) != 1 or logits.dtype != numpy.float32:
        raise Refusal("bad-output", f"its logits are {logits.shape} of {logits.dtype}; export it again")
    expected = request.get("classes")
    if expected is not None and logits.shape[1] != expected:
        raise Refusal("bad-output", f"it answers {logits.shape[1]} numbers where its labels are {expected}")
    for array in (logits, embedding):
        if array is not None and not numpy.isfinite(array).all():
            raise Refusal("bad-output", "it answers numbers that are not finite: export it again, or build it as fp32")
    model.classes = int(logits.shape[1])
    model.embedding_width = None if embedding is None else int(embedding.shape[1])
    return run_ms


def one_line(text: str) -> str:
    """Return the text on one line, bounded."""
    return " ".join(text.split())[:MAX_TEXT]


def first_line(error: BaseException) -> str:
    """Return what an exception says first."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def say(text: str) -> None:
    """Write one line for the daemon's log."""
    sys.stderr.write(f"jetsel host {os.getpid()}: {one_line(text)}\n")
    sys.stderr.flush()


# The process.


def probe(backend: str) -> Dict[str, Any]:
    """Return what this interpreter offers to the backend; a module that does not import has its error."""
    modules = {}  # type: Dict[str, Dict[str, Any]]
    for name in NEEDED[backend]:
        try:
            module = importlib.import_module(name)
        except Exception as error:  # a broken library raises whatever it likes; the reason is what is asked for
            modules[name] = {"version": None, "path": None, "error": one_line(f"{type(error).__name__}: {error}")}
            continue
        version = getattr(module, "__version__", None) or getattr(module, "VERSION_TEXT", None)
        modules[name] = {"version": version and str(version), "path": getattr(module, "__file__", None), "error": None}
    missing = [name for name in NEEDED[backend] if modules[name]["error"] is not None]
    found = {
        "executable": sys.executable,
        "python": platform.python_version(),
        "isolated": bool(sys.flags.isolated),
        "platform": platform.platform(),
        "modules": modules,
        "gpu": None,
        "reason": None,
    }  # type: Dict[str, Any]
    if missing:
        said = "; ".join("{}: {}".format(name, modules[name]["error"]) for name in missing)
        found["reason"] = "it does not import {} ({})".format(", ".join(missing), said)
    else:
        try:
            runtime = RUNTIMES[backend]()
            found["gpu"] = runtime.describe()["gpu"]
            runtime.close()
        except Exception as error:  # as above
            found["reason"] = one_line(f"{backend} does not start: {first_line(error)}")
    found["usable"] = found["reason"] is None
    return found


def _die_with_the_daemon() -> None:
    """Have the kernel kill this process when the daemon's thread that started it ends, however hung it may be."""
    with contextlib.suppress(OSError, AttributeError):  # the socket's end is the other sign
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the host; return the exit status."""
    parser = argparse.ArgumentParser(description="The engine host of jetsel; the daemon starts it.")
    parser.add_argument("--backend", choices=sorted(NEEDED), default="tensorrt")
    parser.add_argument("--fd", type=int, help="the inherited socket")
    parser.add_argument("--probe", action="store_true", help="print what this interpreter offers, as JSON")
    given = parser.parse_args(arguments)
    _die_with_the_daemon()
    if given.probe:
        sys.stdout.write(json.dumps(probe(given.backend)) + "\n")
        return 0
    if given.fd is None:
        parser.error("--fd is needed: jetsel's daemon gives it")
    # The daemon says when to leave, after the last answer; a terminal's Ctrl-C and a service manager's SIGTERM reach
    # the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, given.fd)
    return Host(given.backend, Channel(connection)).serve()


RUNTIMES = {"onnxruntime": OnnxRuntime, "tensorrt": TensorRTRuntime}  # type: Dict[str, Callable[[], Runtime]]

if __name__ == "__main__":
    sys.exit(main())
