"""TensorRT on the first GPU: its log, and the loading and building of engines."""

import contextlib
import importlib
import warnings
from typing import Any, Dict, Optional

from .backend import HostModel, Runtime
from .building import EngineBuild
from .gpu import Gpu
from .messages import DeviceFailed, Refusal, first_line, log_line, one_line
from .tensorrt_model import TensorRTModel


class TensorRTLog:
    """TensorRT's messages. Warnings and errors go to the daemon's log; the last error explains why a call failed."""

    ERROR, WARNING = 1, 2  # of ILogger::Severity: 0 is an internal error, 3 information, 4 verbose

    def __init__(self) -> None:
        self._error = ""

    def add(self, severity: int, text: str) -> None:
        """Note one message. TensorRT calls this from any thread, and must not receive an exception."""
        line = one_line(text)
        if severity <= self.ERROR:
            self._error = line
        if severity <= self.WARNING:
            with contextlib.suppress(OSError):  # a closed log must not stop the host
                log_line("TensorRT: " + line)

    def clear(self) -> None:
        """Forget the last error, before a call that may fail."""
        self._error = ""

    def reason(self) -> str:
        """Return the last error since `clear`, the reason of the failed call."""
        return self._error or "TensorRT gives no reason"

    def logger(self, trt: Any) -> Any:
        """Return a logger for TensorRT (ILogger) that passes every message to `add`."""
        add = self.add

        class Logger(trt.ILogger):  # type: ignore[misc]
            def log(self, severity: Any, msg: str) -> None:
                add(int(severity), msg)

        return Logger()


class TensorRTRuntime(Runtime):
    """TensorRT in one CUDA context that the host's only thread owns; Refusal if TensorRT or CUDA does not start."""

    def __init__(self) -> None:
        self._trt: Any = importlib.import_module("tensorrt")
        self._pycuda: Any = importlib.import_module("pycuda")
        self._gpu = Gpu()
        self._log = TensorRTLog()
        self._logger = self._log.logger(self._trt)
        try:
            self._trt.init_libnvinfer_plugins(self._logger, "")
            self._runtime = self._trt.Runtime(self._logger)
        except TypeError as error:  # pybind raises it if TensorRT returns nothing
            self._gpu.close()
            raise Refusal("unsupported", f"TensorRT does not start: {self._log.reason()} ({error})") from None

    def describe(self) -> Dict[str, Any]:
        cuda = ".".join(str(part) for part in self._gpu.cuda.get_version()[:2])
        libraries = {"pycuda": str(self._pycuda.VERSION_TEXT), "cuda": cuda}
        return {"version": str(self._trt.__version__), "libraries": libraries, "gpu": self._gpu.describe()}

    def available_bytes(self) -> Optional[int]:
        return self._gpu.memory()[0]

    def held_bytes(self) -> Optional[int]:
        """Return all bytes that are not available, since engines take memory of the GPU, not of this process."""
        available, total = self._gpu.memory()
        return None if available is None or total is None else total - available

    def open(self, request: Dict[str, Any], content: bytes) -> HostModel:
        """Load an engine from its plan file's content; raises Refusal, or DeviceFailed if CUDA fails."""
        self._log.clear()
        cuda = self._gpu.cuda
        try:
            engine = self._runtime.deserialize_cuda_engine(content)
            if engine is None:
                message = "TensorRT {} does not load it: {}; build it again: jetsel models build {}"
                raise Refusal("load-failed", message.format(self._trt.__version__, self._log.reason(), request["name"]))
            return TensorRTModel(self._trt, self._gpu, self._log, engine, request["input_px"])
        except cuda.MemoryError as error:
            raise Refusal("load-failed", f"the GPU's memory is full ({error}): serve fewer models") from None
        except cuda.Error as error:
            raise DeviceFailed(f"the GPU failed while it loaded: {error}") from None
        except RuntimeError as error:  # pybind's form of TensorRT's exceptions
            raise Refusal("load-failed", f"TensorRT does not load it: {first_line(error)}") from None

    def build(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Build an engine, see EngineBuild.run; raises Refusal, or DeviceFailed if CUDA fails."""
        cuda = self._gpu.cuda
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # flags that newer versions deprecate
                return EngineBuild(self._trt, self._log, self._logger, request).run()
        except cuda.Error as error:
            raise DeviceFailed(f"the GPU failed during the build: {error}") from None
        except RuntimeError as error:  # pybind's form of TensorRT's exceptions
            raise Refusal("build-failed", f"TensorRT failed: {first_line(error)}") from None

    def close(self) -> None:
        self._runtime = None
        self._gpu.close()
