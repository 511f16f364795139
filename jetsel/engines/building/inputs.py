"""The photographs that a model which was just built is compared on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

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
