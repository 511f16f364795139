"""One run of a model in an engine host: its input into the shared memory, its outputs out of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError, Output
from jetsel.engines.hosting.memory import Memory

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def good(name: str, reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a reply that says ok; raises EngineFailedError with the model's name and the host's reason."""
    if not reply["ok"]:
        raise EngineFailedError(f"{name}: {reply.get('message')}")
    return reply


@dataclass(frozen=True)
class Loaded:
    """A model that a host has loaded under the number `key`. max_batch: images of one run, None without a limit."""

    key: int
    weights: Weights
    max_batch: int | None
    embedding_width: int | None

    def run(self, memory: Memory, ask: Ask, *parts: NDArray[np.float32]) -> tuple[Output, float]:
        """Run the model on all parts; return what it gave, the caller's own, and the seconds that the host took.

        memory, ask: of the host. Raises EngineFailedError, EngineDiedError, and what `ask` does.
        """
        name, shape = self.weights.name, self._shape(parts)
        rows, classes, width = shape[0], self.weights.classes, self.embedding_width
        input_bytes, output_bytes = 4 * math.prod(shape), 4 * rows * (classes + (width or 0))
        try:
            region = memory.take(input_bytes + output_bytes)
        except OSError as error:
            raise EngineFailedError(f"{name}: no memory to share with the engine host: {error.strerror}") from None
        try:
            np.concatenate(parts, out=region.view(region.offset, shape))
            output_at = region.offset + input_bytes
            results = region.view(output_at, (output_bytes // 4,))
            results.fill(np.nan)  # what the host does not write must never look like an answer
            request = {
                "model": self.key,
                "input": {"offset": region.offset, "shape": shape},
                "output": {"offset": output_at, "bytes": output_bytes},
            }
            reply = good(name, ask(request))
            values = results.copy()
        finally:
            memory.give_back(region)
        logits, rest = values[: rows * classes], values[rows * classes :]
        embedding = None if width is None else rest.reshape(rows, width)
        return Output(logits.reshape(rows, classes), embedding, reply["device_ms"]), reply["wall_ms"] / 1e3

    def _shape(self, parts: tuple[NDArray[np.float32], ...]) -> tuple[int, int, int, int]:
        """Return the shape of all parts together; raises EngineFailedError where they are no such images."""
        name, expected = self.weights.name, (3, self.weights.height_px, self.weights.width_px)
        for part in parts:
            if part.ndim != 4 or part.shape[1:] != expected or part.dtype != np.float32:
                raise EngineFailedError(
                    f"{name}: inference failed: {part.dtype} of shape {part.shape}, not float32 (n, *{expected})"
                )
        count = sum(len(part) for part in parts)
        if self.max_batch is not None and count > self.max_batch:
            raise EngineFailedError(f"{name}: {count} images at once; it takes {self.max_batch}")
        return count, *expected
