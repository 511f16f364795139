"""An ONNX file: whether its weights lie elsewhere, and its graph, as far as they are read without ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator

from jetsel.errors import ManifestError
from jetsel.zoo.classifier import classifier_of
from jetsel.zoo.cost import tensors_to_shape, uncountable
from jetsel.zoo.onnx_file import refers_outside
from jetsel.zoo.onnx_graph import graph_in
from tests.unit.zoo.making import EXTERNAL, WHOLE, field, onnx_file
from tests.unit.zoo.networks import network

MAX_BYTES = 4096
WORDS = (b"ORTM", b"Conv", b"MatMul", b"Gemm", b"Softmax", b"logits", b"embedding", b"\x6a", b"\x70\x01", b"\x82\x01")


def run(data: bytes) -> None:
    """A file that is accepted has a graph whose cost can be counted, or which says why not."""
    try:
        if refers_outside(data):
            return
        graph = graph_in(data)
    except ValueError as error:  # what store.check_whole turns into ManifestError
        raise ManifestError(str(error)) from None
    assert graph.parameters >= 0
    found = classifier_of(graph, "model.onnx", (64, 64), None)
    assert found.before_softmax is None or isinstance(found.suffix, bytes)
    if uncountable(graph) is None:
        assert len(set(tensors_to_shape(graph))) == len(tensors_to_shape(graph))


def seeds() -> Iterator[bytes]:
    yield WHOLE
    yield onnx_file(field(5, EXTERNAL))
    small = network(("Softmax", "scores", "shares"), outputs=("shares",))
    weights = small.index(field(8, b"weights")) + len(field(8, b"weights"))
    yield small[:2000] if weights > 2000 else small
    yield onnx_file(
        field(1, field(1, b"a") + field(2, b"logits") + field(4, b"MatMul")) + field(12, field(1, b"logits"))
    )
    yield onnx_file(field(1, field(5, field(6, field(5, EXTERNAL)))))
    side = field(1, field(1, 3))
    value = field(1, b"images") + field(2, field(1, field(1, 1) + field(2, side * 4)))
    yield onnx_file(
        field(11, value) + field(12, field(1, b"logits")) + field(5, field(1, b"\x03\x04") + field(8, b"w"))
    )
