"""A model's manifest, and after its first zero byte the labels beside it: what lies in a folder of models."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jetsel.errors import ManifestError
from jetsel.image import Photograph, model_input
from jetsel.zoo import Labels
from jetsel.zoo.label_files import table_in
from jetsel.zoo.manifest import Manifest, parse
from tests.fuzz.mutations import json_mutation as mutation
from tests.unit.zoo.making import LABELS, described

MAX_BYTES = 8192
WORDS = tuple(f'"{key}"'.encode() for key in Manifest.__struct_fields__)
PLACE = Path("models/xs.json")
PHOTOGRAPH = Photograph(np.zeros((9, 16, 3), np.uint8), 16, 9)
SMALL_PX = 512  # an input up to here is made, so that a run stays short

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run", "seeds"]


def run(data: bytes) -> None:
    """Names that are accepted are labels, and a manifest's input is one that a photograph can be made into."""
    text, _, labels = data.partition(b"\0")
    with contextlib.suppress(ManifestError):
        Labels.parse(table_in(labels, PLACE), PLACE)
    with contextlib.suppress(ManifestError):
        Labels.parse(labels, PLACE)
    spec = parse(text, PLACE).input
    if max(spec.width_px, spec.height_px, spec.resize_px or 0) <= SMALL_PX:
        assert model_input(PHOTOGRAPH, spec).shape == (1, 3, spec.height_px, spec.width_px)


def seeds() -> Iterator[bytes]:
    yield json.dumps(described()).encode() + b"\0" + LABELS.encode()
    wide = {
        "width_px": 64,
        "height_px": 48,
        "resize": "stretch",
        "interpolation": "antialiased-bicubic",
        "crop": "none",
    }
    other = described(input={**described()["input"], **wide}, embedding_width=None, outputs=["logits"])
    yield json.dumps(other).encode() + b'\0["tabby, cat", "crane", "crane"]'
    yield b'{"more": ' + b"[" * 3000 + b"\0tabby\nespresso\n"
