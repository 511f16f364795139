"""A model whose last layer is the owner's: a backbone's embedding, times a matrix of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jetsel.base.weights import Head, Weights
from jetsel.engines.base import Engine, EngineFailedError, Output, Place


class HeadedEngine:
    """Runs the backbone, on whatever backend it is, and the head here: a small matrix, wherever the backbone runs."""

    def __init__(self, backbone: Engine, head: Head) -> None:
        self.name = backbone.name
        self.concurrency = backbone.concurrency
        self.place: Place | None = backbone.place
        self.max_batch = backbone.max_batch
        self._backbone, self._head = backbone, head

    @property
    def unavailable(self) -> str | None:
        """See Engine."""
        return self._backbone.unavailable

    @property
    def is_returning(self) -> bool:
        """See Engine."""
        return self._backbone.is_returning

    @property
    def is_stale(self) -> bool:
        """See Engine."""
        return self._backbone.is_stale

    @property
    def returns_within_s(self) -> float:
        """See Engine."""
        return self._backbone.returns_within_s

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """See Engine.infer."""
        found = self._backbone.infer(*parts)
        if found.embedding is None or found.embedding.shape[1:] != self._head.weights.shape[:1]:
            raise EngineFailedError(f"{self.name}: its backbone gives no embedding for this head: train the head again")
        return found._replace(logits=found.embedding @ self._head.weights + self._head.bias)

    def close(self) -> None:
        """See Engine.close."""
        self._backbone.close()


def with_head(engine: Engine, weights: Weights) -> Engine:
    """Return the engine of a backbone as that of the model, with its head if it has one.

    Raises EngineFailedError if the head's file cannot be read.
    """
    if weights.head is None:
        return engine
    try:
        return HeadedEngine(engine, Head.read(weights.head.path))
    except (OSError, ValueError, LookupError) as error:
        engine.close()
        raise EngineFailedError(
            f"{weights.name}: {weights.head.path}: is not a head: {error}; train it again"
        ) from error
