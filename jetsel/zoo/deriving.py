"""The manifest of a model that was made of another one of the same family."""

from __future__ import annotations

import msgspec

from jetsel.base.weights import Tried
from jetsel.image import InputSpec
from jetsel.zoo.manifest import DerivedFrom, Manifest


def derived(
    parent: Manifest,
    name: str,
    sha256: str,
    labels_sha256: str,
    spec: InputSpec,
    tried: Tried,
    parameters: int,
    words: str,
) -> Manifest:
    """Return the manifest of a file with this hash.

    labels_sha256: of the family's labels. spec: what it takes. tried: what it was seen to do. parameters: numbers
    in its weights. words: how it was made.
    """
    is_same = sha256 == parent.sha256  # then only what it takes differs
    return msgspec.structs.replace(
        parent,
        name=name,
        file=f"{parent.family}.{name}.{sha256[:12]}.onnx",
        sha256=sha256,
        labels=f"{parent.family}.{labels_sha256[:12]}.tsv",
        input=spec,
        outputs=("logits",) if tried.embedding_width is None else ("logits", "embedding"),
        embedding_width=tried.embedding_width,
        latency_ms=tried.latency_ms,
        multiply_accumulates=None,  # it has a latency
        parameters=parameters,
        tensors_sha256=parent.tensors_sha256 if is_same else None,
        recipe=parent.recipe if is_same else None,
        source=f"{parent.source}; made of {parent.name}: {words}",
        derived_from=DerivedFrom(name=parent.name, identity=parent.identity, recipe=words),
    )
