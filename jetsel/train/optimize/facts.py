"""What a model costs that is not seen by running it: bytes, bytes when compressed, operations."""

from __future__ import annotations

import gzip

from msgspec import Struct

from jetsel.errors import ManifestError
from jetsel.train.optimize.graph import for_size, operations
from jetsel.zoo import Model
from jetsel.zoo.onnx_model import model_in


class Facts(Struct, frozen=True):
    """Of one model's ONNX file. operations: multiply-accumulates of one photograph, None where they cannot be told."""

    bytes: int
    gzipped_bytes: int
    operations: int | None
    recipe: str | None


def facts_of(model: Model) -> Facts:
    """Look into the file of a model; raises ManifestError where it cannot be read."""
    content, manifest = model.path.read_bytes(), model.manifest
    derived = manifest.derived_from
    try:
        graph = for_size(model_in(content, manifest.name), manifest.input.height_px, manifest.input.width_px)
        counted: int | None = operations(graph)
    except (ManifestError, KeyError):  # a tensor whose shape nothing tells
        counted = None
    return Facts(len(content), len(gzip.compress(content)), counted, None if derived is None else derived.recipe)
