"""The memory that inputs and outputs pass through: made by the daemon, mapped by both sides, gone with their ends.

It is a file without a name (memfd_create(2)), so a SIGKILL of either side leaves nothing behind. Each host gets one of
its own: what a dying one still writes reaches nobody.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import threading
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError

SMALLEST_BYTES = 1 << 16
F_SEAL_SHRINK = 0x0002  # fcntl(2): so that a host that went mad cannot take mapped pages away


class Region:
    """A part of the memory that one run has for itself, as float32."""

    def __init__(self, descriptor: int, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size
        self._numbers = np.frombuffer(mmap.mmap(descriptor, size, offset=offset), np.float32)

    def view(self, offset: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the array of this shape at an offset in the whole memory; ValueError where it does not fit."""
        begin = (offset - self.offset) // 4
        return self._numbers[begin : begin + math.prod(shape)].reshape(shape)


class Memory:
    """All regions of one host. Regions that were given back are used again; any thread may call."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("jetsel-engine-host", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK)
        self._lock = threading.Lock()
        self._free: dict[int, list[Region]] = defaultdict(list)
        self.size = 0
        try:
            self.give_back(self.take(SMALLEST_BYTES))
        except OSError:
            self.close()
            raise

    def take(self, size: int) -> Region:
        """Return a region of at least `size` bytes; raises EngineDiedError once the memory is closed."""
        rounded = max(SMALLEST_BYTES, 1 << (size - 1).bit_length())  # few sizes, so that regions fit again
        with self._lock:
            if self._free[rounded]:
                return self._free[rounded].pop()
            if self.fd < 0:
                raise EngineDiedError("the engine host died: send again")
            offset = self.size
            os.ftruncate(self.fd, offset + rounded)
            self.size = offset + rounded
            return Region(self.fd, offset, rounded)

    def give_back(self, region: Region) -> None:
        """Let the region be used again."""
        with self._lock:
            self._free[region.size].append(region)

    def close(self) -> None:
        """Close the descriptor; mapped parts live until the last view of them goes."""
        with self._lock:
            descriptor, self.fd = self.fd, -1
        if descriptor >= 0:
            os.close(descriptor)
