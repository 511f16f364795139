"""What each backend offers to the requests: a runtime, the models that it loads, and their memory."""

import mmap
from pathlib import Path
from typing import Any, Dict, Optional, Tuple


class HostModel:
    """One loaded model. max_batch: images at a time, None without a limit; scratch_bytes: what a run works in."""

    max_batch: Optional[int] = None
    scratch_bytes: Optional[int] = None

    def run(self, batch: Any) -> Tuple[Any, Any, Optional[float]]:
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
        """Return "version", "libraries" and "gpu" as the reply to hello has them."""
        raise NotImplementedError

    def available_bytes(self) -> Optional[int]:
        """Return the memory that another model could still take."""
        return available_bytes()

    def held_bytes(self) -> Optional[int]:
        """Return a number that grows by what loading a model takes."""
        return resident_bytes()

    def open(self, request: Dict[str, Any], content: bytes) -> HostModel:
        """Load one model from its file's content; raises Refusal, or Poisoned."""
        raise NotImplementedError

    def build(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Build an engine, if this runtime runs nothing else; raises Refusal, or Poisoned."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the device."""


class SharedMemory:
    """The daemon's memory, mapped here: inputs and outputs pass through it, float32 in C order."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size = 0
        self.grow(size)

    def grow(self, size: int) -> None:
        """Map `size` bytes if fewer are mapped."""
        if size > self.size:
            self._map = mmap.mmap(self._descriptor, size)  # the former one goes when its last view does
            self.size = size

    def view(self, offset: int, shape: Tuple[int, ...]) -> Any:
        """Return the float32 array of this shape at the offset; raises TypeError if it lies outside."""
        import numpy

        return numpy.ndarray(shape, numpy.float32, memoryview(self._map)[offset:])


def available_bytes() -> Optional[int]:
    """Return the memory that could be had without swapping (proc(5), MemAvailable); None if it is not known."""
    return _meminfo("MemAvailable:")


def total_bytes() -> Optional[int]:
    """Return the memory of the machine, None if it is not known."""
    return _meminfo("MemTotal:")


def resident_bytes() -> Optional[int]:
    """Return this process's resident memory (proc(5), statm), None if it is not known."""
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
