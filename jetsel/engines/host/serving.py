"""Answers the daemon's messages until the daemon closes its end: one method for each kind of request."""

import argparse
import contextlib
import ctypes
import hashlib
import importlib
import os
import platform
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from .backend import HostModel, Runtime, SharedMemory
from .messages import Channel, DaemonGone, DeviceFailed, Refusal, log_line, one_line

PROTOCOL = 4
PR_SET_PDEATHSIG = 1  # prctl(2)
RUNTIMES = {"onnxruntime": "onnx_runtime:OnnxRuntime", "tensorrt": "tensorrt_runtime:TensorRTRuntime"}
NEEDED = {"onnxruntime": ("numpy", "onnxruntime"), "tensorrt": ("numpy", "tensorrt", "pycuda.driver")}


class Host:
    """The loaded models, by the numbers that the daemon gave them, and a method that answers each kind of request."""

    def __init__(self, backend: str, channel: Channel) -> None:
        self._channel = channel
        self._backend = backend
        self._models: Dict[int, HostModel] = {}
        self._runtime: Any = None  # Runtime, after hello
        self._shared: Any = None  # SharedMemory, after hello
        self._reserve_bytes = 0  # memory that loads must leave free
        self._kinds: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
            "hello": self._hello,
            "load": self._load,
            "unload": self._unload,
            "infer": self._infer,
            "build": lambda request: self._runtime.build(request),
            "ping": lambda _: {},
            "quit": lambda _: {},
        }

    def serve(self) -> int:
        """Answer messages until the daemon closes its end or sends quit; return the exit status."""
        status: Optional[int] = None
        try:
            while status is None:
                request = self._channel.receive()
                status = 0 if request is None else self._answer(request)
        except DaemonGone as error:
            log_line(f"stopping: {error}")
            return 1
        finally:
            self._close()
        return status

    def _answer(self, request: Dict[str, Any]) -> Optional[int]:
        """Answer one request; return the exit status if the process must end, else None."""
        status = 0 if request["do"] == "quit" else None
        try:
            reply = dict(self._kinds[request["do"]](request), ok=True)
        except Refusal as refusal:
            reply = {"ok": False, "code": refusal.code, "message": one_line(str(refusal))}
        except DeviceFailed as error:
            log_line(f"the device failed: {error}")
            reply = {"ok": False, "code": "poisoned", "message": one_line(str(error))}
            status = 3
        except Exception as error:  # an unexpected error fails only this request
            traceback.print_exc()
            reply = {"ok": False, "code": "internal", "message": one_line(f"{type(error).__name__}: {error}")}
        reply["id"] = request["id"]
        self._channel.send(reply)
        return status

    def _hello(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Start the backend and map the shared memory; return versions and GPU."""
        _check_modules(self._backend)
        import numpy

        self._reserve_bytes = request["reserve_bytes"]
        module, _, name = RUNTIMES[self._backend].partition(":")
        runtime: Runtime = getattr(importlib.import_module("." + module, __package__), name)()
        self._shared = SharedMemory(request["memory_fd"], request["memory_bytes"])
        self._runtime = runtime
        versions = runtime.describe()
        versions["libraries"]["numpy"] = str(numpy.__version__)
        return dict(versions, protocol=PROTOCOL, python=platform.python_version(), backend=self._backend)

    def _load(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Load and try a model, in place of the one with its number; return its limits and the memory that it took."""
        content = _read_file(request["path"], request["sha256"])
        self._check_reserve(max(len(content), int(request.get("expected_bytes") or 0)), "would be left after loading")
        before = self._runtime.held_bytes()
        model: HostModel = self._runtime.open(request, content)
        del content
        try:
            info = self._warm_up(model, request)
            after = self._runtime.held_bytes()
            self._check_reserve(0, "are left after loading")
        except BaseException:
            model.close()
            raise
        former = self._models.pop(request["model"], None)
        if former is not None:
            former.close()
        self._models[request["model"]] = model
        # Unknown if other programs freed more memory meanwhile than the model took.
        is_known = before is not None and after is not None and after > before
        info.update(max_batch=model.max_batch, scratch_bytes=model.scratch_bytes)
        return dict(info, cost_bytes=after - before if is_known else None)

    def _check_reserve(self, more_bytes: int, when: str) -> None:
        """Raise Refusal if another more_bytes would leave less than the reserve. when: for the message."""
        available = self._runtime.available_bytes()
        if available is not None and available - more_bytes < self._reserve_bytes:
            left_mb, reserve_mb = (available - more_bytes) / 1e6, self._reserve_bytes / 1e6
            raise Refusal(
                "memory-reserve",
                f"{left_mb:.0f} MB {when}, less than the reserve of {reserve_mb:.0f} MB: "
                "serve fewer or smaller models ([models] only), or lower [host] reserve_mb",
            )

    def _warm_up(self, model: HostModel, request: Dict[str, Any]) -> Dict[str, Any]:
        """Run a fixed pattern twice, check the outputs; return their widths and the second run's ms. Raises Refusal."""
        import numpy

        height, width = request["input_px"]
        pattern = numpy.linspace(-2.0, 2.0, 3 * height * width, dtype=numpy.float32).reshape(1, 3, height, width)
        for _ in range(2):  # the first run is slower
            began = time.perf_counter()
            logits, embedding, _ = model.run(pattern)
            run_ms = (time.perf_counter() - began) * 1e3
        if logits.shape != (1, request["classes"]) or logits.dtype != numpy.float32:
            raise Refusal(
                "bad-output",
                f"its logits are {logits.dtype} of shape {logits.shape}, but it has {request['classes']} labels",
            )
        for array in (logits, embedding):
            if array is not None and not numpy.isfinite(array).all():
                message = "it returns numbers that are not finite: export it again, or build it as fp32"
                raise Refusal("bad-output", message)
        width = None if embedding is None else int(embedding.shape[1])
        return {"classes": int(logits.shape[1]), "embedding_width": width, "run_ms": run_ms}

    def _unload(self, request: Dict[str, Any]) -> Dict[str, Any]:
        model = self._models.pop(request["model"], None)
        if model is not None:
            model.close()
        return {}

    def _infer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Run a model on the input in the shared memory, and write logits, then embedding, to the output there."""
        began = time.perf_counter()
        self._shared.grow(request["memory_bytes"])
        model = self._models.get(request["model"])
        if model is None:
            raise Refusal("bad-request", f"model {request['model']} is not loaded")
        source, target = request["input"], request["output"]
        batch = self._shared.view(source["offset"], tuple(source["shape"]))
        logits, embedding, device_ms = model.run(batch)
        offset, end = target["offset"], target["offset"] + target["bytes"]
        for name, array in (("logits", logits), ("embedding", embedding)):
            if array is None:
                continue
            if array.ndim != 2 or len(array) != len(batch) or offset + 4 * array.size > end:
                raise Refusal("bad-output", f"{name} has shape {array.shape}, which does not fit {len(batch)} images")
            self._shared.view(offset, array.shape)[:] = array
            offset += 4 * array.size
        return {"device_ms": device_ms, "wall_ms": (time.perf_counter() - began) * 1e3}

    def _close(self) -> None:
        for model in self._models.values():
            model.close()
        if self._runtime is not None:
            self._runtime.close()


def _check_modules(backend: str) -> None:
    """Raise Refusal with each module that the backend needs and this interpreter cannot import, and why."""
    missing = {}
    for name in NEEDED[backend]:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: PERF203  # a broken library may raise anything
            missing[name.partition(".")[0]] = f"{type(error).__name__}: {error}"
    if missing:
        faults = "; ".join(f"{name} ({why})" for name, why in missing.items())
        raise Refusal("missing-modules", f"Python {platform.python_version()} does not import {faults}")


def _read_file(path: str, sha256: str) -> bytes:
    """Return a file's content; raises Refusal if it cannot be read or has another hash."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Refusal("load-failed", f"{path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Refusal("mismatch", f"{path} has changed: copy or build it again")
    return content


def main(arguments: List[str]) -> int:
    """Run the host with these command-line arguments; return the exit status."""
    parser = argparse.ArgumentParser(prog="host", description="The engine host of jetsel; the daemon starts it.")
    parser.add_argument("--backend", choices=sorted(RUNTIMES), required=True)
    parser.add_argument("--fd", type=int, required=True, help="the inherited socket")
    options = parser.parse_args(arguments)
    with contextlib.suppress(OSError, AttributeError):  # the kernel ends it with the daemon's thread, even if it hangs
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # The daemon stops the host after the last answer; a terminal's Ctrl-C and a service manager's SIGTERM also reach
    # this process and must not.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print belongs to the log
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, options.fd)
    return Host(options.backend, Channel(connection)).serve()
