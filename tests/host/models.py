"""What the hosts are given to load: models that can be worked out by hand, and requests that name them."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model

CLASSES = 4
WEIGHTS = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)

_keys = itertools.count(1)


def tiny_file(folder: Path, weights: NDArray[np.float32] = WEIGHTS, **changes: Any) -> Path:
    """Write a model of one matrix: its embedding is its flattened input, its logits are that times the weights."""
    path = folder / "tiny.onnx"
    path.write_bytes(matrix_model(weights, **changes))
    return path


def load_request(
    path: Path, classes: int = CLASSES, input_px: tuple[int, int] = (HEIGHT_PX, WIDTH_PX)
) -> dict[str, Any]:
    """What a host is asked to load, under a number that no other model has."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    asked = {"model": next(_keys), "name": path.stem, "path": str(path), "sha256": sha256}
    return {**asked, "classes": classes, "input_px": input_px, "threads": 1, "made_for": None}


def images(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Inputs of the tiny model."""
    return np.random.default_rng(seed).normal(size=(count, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)
