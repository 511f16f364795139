"""The memory that the daemon shares with the host, and how much memory there is."""

import mmap
from pathlib import Path
from typing import Any, Optional, Tuple


class Shared:
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
