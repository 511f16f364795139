"""Interface of the host's backends (ONNX Runtime, TensorRT): a runtime, its models, and their memory."""

import mmap
from pathlib import Path
from typing import Any, Dict, Optional, Tuple


class HostModel:
    """One loaded model."""

    max_batch: Optional[int] = None  # most images in one run; None: no limit
    scratch_bytes: Optional[int] = None  # working memory of a run; None if unknown

    def run(self, batch: Any) -> Tuple[Any, Any, Optional[float]]:
        """Return logits (n, classes) float32, the embedding (n, width) or None, and ms measured on the device or None.

        batch: (n, 3, height, width) float32, a view of the shared memory. The next run may overwrite the arrays. Raises
        Refusal("infer-failed", ...) or DeviceFailed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free the model's memory."""


class Runtime:
    """One backend: loads and builds models, and owns the resources that they share."""

    def describe(self) -> Dict[str, Any]:
        """Return {"version", "libraries", "gpu"} for the reply to hello (docs/engine-host.md)."""
        raise NotImplementedError

    def available_bytes(self) -> Optional[int]:
        """Return the bytes that another model could take, None if unknown."""
        return available_bytes()

    def held_bytes(self) -> Optional[int]:
        """Return the bytes in use; the difference over a load is the model's cost. None if unknown."""
        return resident_bytes()

    def open(self, request: Dict[str, Any], content: bytes) -> HostModel:
        """Load a model. request: of kind "load"; content: of its file. Raises Refusal or DeviceFailed."""
        raise NotImplementedError

    def build(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Build an engine by a request of kind "build"; return the reply's fields. Raises Refusal or DeviceFailed."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the device."""


class SharedMemory:
    """The file in memory (descriptor, size in bytes) that the daemon made for inputs and outputs, mapped here."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size = 0
        self.grow(size)

    def grow(self, size: int) -> None:
        """Map `size` bytes if fewer are mapped: the daemon enlarges the file when it needs more."""
        if size > self.size:
            self._map = mmap.mmap(self._descriptor, size)  # the former map is freed with its last view
            self.size = size

    def view(self, offset: int, shape: Tuple[int, ...]) -> Any:
        """Return the float32 array of this shape at this byte offset; raises TypeError if it lies outside."""
        import numpy

        return numpy.ndarray(shape, numpy.float32, memoryview(self._map)[offset:])


def available_bytes() -> Optional[int]:
    """Return the machine's bytes that are available without swapping (proc(5), MemAvailable); None if unknown."""
    return _meminfo("MemAvailable:")


def total_bytes() -> Optional[int]:
    """Return the machine's memory in bytes, None if unknown."""
    return _meminfo("MemTotal:")


def resident_bytes() -> Optional[int]:
    """Return this process's resident memory in bytes (proc(5), statm), None if unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return None


def _meminfo(name: str) -> Optional[int]:
    try:
        with Path("/proc/meminfo").open() as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
    except (OSError, ValueError, IndexError):
        return None
