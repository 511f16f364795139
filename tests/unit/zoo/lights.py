"""Models that tell dark images from bright ones if levels are brought to -1 to 1, and in no other way; such images."""

import hashlib
from pathlib import Path

import cv2
import msgspec
import numpy as np

from jetsel.zoo.conventions import convention_spec
from tests.contract.tiny import mean_model
from tests.unit.zoo.making import put_model

LABELS = "dark\tdark\nbright\tbright\n"
SIDE_PX = 8
MODEL = mean_model(np.array([[-1, 1]] * 3, np.float32))
"""Bright is what has a mean above 0."""


def lights(folder: Path, count: int) -> Path:
    """Write grey images with a mean a little below or above the middle of the levels, into class folders by turns."""
    for number in range(count):
        name, level = (("dark", 120), ("bright", 135))[number % 2]
        (folder / name).mkdir(parents=True, exist_ok=True)
        blurred = cv2.resize(
            np.random.default_rng(number).normal(0, 9, (4, 4)), (32, 32), interpolation=cv2.INTER_CUBIC
        )
        grey = (blurred - blurred.mean() + level).round().astype(np.uint8)
        assert cv2.imwrite(str(folder / name / f"{number:03}.png"), np.dstack([grey] * 3))
    return folder


def put_light_model(folder: Path, name: str, like: str, *, is_doubted: bool) -> Path:
    """Write such a model of the family `lights`, prepared by a convention."""
    return put_model(
        folder,
        labels=LABELS,
        weights=MODEL,
        name=name,
        family="lights",
        file=f"{name}.onnx",
        sha256=hashlib.sha256(MODEL).hexdigest(),
        input=msgspec.to_builtins(convention_spec(like, SIDE_PX, SIDE_PX)),
        embedding_width=None,
        preprocessing={"source": "a file"} if is_doubted else None,
    )
