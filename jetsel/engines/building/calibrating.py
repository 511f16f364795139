"""Photographs for a build in int8: handed to the engine host in batches, through the shared memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from jetsel.engines.hosting.memory import Memory, Region

Array = NDArray[np.float32]
T_co = TypeVar("T_co", covariant=True)


class Photographs(Protocol[T_co]):
    """Photographs, read anew at each pass."""

    @property
    def source(self) -> str:
        """Which photographs they are, for people."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


Inputs = Photographs[Array]
"""As one model takes them: each (1, 3, height, width) float32."""


class CalibrationFeed:
    """Gives the host as many photographs as it asks for, until there are no more."""

    def __init__(self, inputs: Inputs, memory: Memory) -> None:
        self._photographs = iter(inputs)
        self._memory = memory
        self._region: Region | None = None

    def __call__(self, count: int) -> Mapping[str, Any]:
        """Write the next `count` photographs; a last batch that is smaller repeats its own."""
        found = list(itertools.islice(self._photographs, count))
        if not found:
            return {"count": 0}
        batch = np.concatenate(list(itertools.islice(itertools.cycle(found), count)))
        if self._region is None:
            self._region = self._memory.take(batch.nbytes)
        self._region.view(self._region.offset, batch.shape)[:] = batch
        return {"count": len(found), "offset": self._region.offset, "shape": batch.shape}
