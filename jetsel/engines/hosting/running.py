"""One run of a model in an engine host, and the memory for its input and outputs.

The daemon makes the memory as a file without a name (memfd_create(2)), and both sides map it, so that a SIGKILL of
either side leaves nothing behind. Each host gets its own memory, so that a dying host cannot write to its successor's.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import EngineDiedError
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError, Output

SMALLEST_BYTES = 1 << 16  # of a region
F_SEAL_SHRINK = 0x0002  # fcntl(2): a faulty host must not remove mapped pages


class MemoryRegion:
    """Part of the shared memory, for one run. offset, size: in bytes."""

    def __init__(self, descriptor: int, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size
        self._numbers = np.frombuffer(mmap.mmap(descriptor, size, offset=offset), np.float32)

    def view(self, start: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the float32 array of this shape from the region's number `start` on; ValueError if it does not fit."""
        return self._numbers[start : start + math.prod(shape)].reshape(shape)


class Memory:
    """The memory shared with one host, in regions that are used again after their release. Any thread may call."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("jetsel-engine-host", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK)
        self._lock = threading.Lock()
        self._free: dict[int, list[MemoryRegion]] = defaultdict(list)  # by size
        self.size = 0  # in bytes; it only grows
        try:
            self.release(self.allocate(SMALLEST_BYTES))
        except OSError:
            self.close()
            raise

    def allocate(self, size: int) -> MemoryRegion:
        """Return a free region of at least `size` bytes; raises OSError, or EngineDiedError after `close`."""
        rounded = max(SMALLEST_BYTES, 1 << (size - 1).bit_length())  # few sizes, so that regions can be used again
        with self._lock:
            if self._free[rounded]:
                return self._free[rounded].pop()
            if self.fd < 0:
                raise EngineDiedError("the engine host died: send again")
            offset = self.size
            os.ftruncate(self.fd, offset + rounded)
            self.size = offset + rounded
            return MemoryRegion(self.fd, offset, rounded)

    def release(self, region: MemoryRegion) -> None:
        """Make the region available to later runs; the caller no longer uses it."""
        with self._lock:
            self._free[region.size].append(region)

    def close(self) -> None:
        """Close the descriptor; mapped parts live as long as their views."""
        with self._lock:
            descriptor, self.fd = self.fd, -1
        if descriptor >= 0:
            os.close(descriptor)


Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # sends an "infer" request, and returns the host's reply


def checked_reply(name: str, reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the reply if it is successful; raise EngineFailedError with the host's reason if not."""
    if not reply["ok"]:
        raise EngineFailedError(f"{name}: {reply.get('message')}")
    return reply


@dataclass(frozen=True)
class HostedModel:
    """A model that a host has loaded."""

    number: int  # by which the host knows it
    weights: Weights
    max_batch: int | None  # most images of one run; None: no limit
    embedding_width: int | None  # None if it has no embedding

    def run(self, memory: Memory, ask: Ask, *parts: NDArray[np.float32]) -> tuple[Output, float]:
        """Run the model once on all parts; return its output, which the caller owns, and the seconds taken in the host.

        parts: (n, 3, height, width) float32 each. memory: shared with the host. Raises EngineFailedError,
        EngineDiedError if the memory is closed, and what `ask` raises.
        """
        name, shape = self.weights.name, self._shape(parts)
        rows, classes, width = shape[0], self.weights.classes, self.embedding_width
        input_bytes, output_bytes = 4 * math.prod(shape), 4 * rows * (classes + (width or 0))
        try:
            region = memory.allocate(input_bytes + output_bytes)
        except OSError as error:
            raise EngineFailedError(f"{name}: no memory to share with the engine host: {error.strerror}") from None
        try:
            np.concatenate(parts, out=region.view(0, shape))
            results = region.view(input_bytes // 4, (output_bytes // 4,))
            results.fill(np.nan)  # so that bytes which the host does not write never look like a result
            request = {
                "model": self.number,
                "input": {"offset": region.offset, "shape": shape},
                "output": {"offset": region.offset + input_bytes, "bytes": output_bytes},
            }
            reply = checked_reply(name, ask(request))
            values = results.copy()
        finally:
            memory.release(region)
        logits, rest = values[: rows * classes], values[rows * classes :]
        embedding = None if width is None else rest.reshape(rows, width)
        return Output(logits.reshape(rows, classes), embedding, reply["device_ms"]), reply["wall_ms"] / 1e3

    def _shape(self, parts: tuple[NDArray[np.float32], ...]) -> tuple[int, int, int, int]:
        """Return the shape of all parts together; raises EngineFailedError if they do not fit the model."""
        name, expected = self.weights.name, (3, self.weights.height_px, self.weights.width_px)
        for part in parts:
            if part.ndim != 4 or part.shape[1:] != expected or part.dtype != np.float32:
                message = f"{name}: inference failed: {part.dtype} of shape {part.shape}, not float32 (n, *{expected})"
                raise EngineFailedError(message)
        count = sum(len(part) for part in parts)
        if self.max_batch is not None and count > self.max_batch:
            raise EngineFailedError(f"{name}: received {count} images at once; the maximum is {self.max_batch}")
        return count, *expected
