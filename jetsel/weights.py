"""What a backend is to load: the values that the models' store hands to the engines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """The ONNX file of one model, its hash in hexadecimal, what it takes and how many numbers it answers."""

    name: str
    path: Path
    sha256: str
    height_px: int
    width_px: int
    classes: int
