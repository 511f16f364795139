"""What ships of the family of ImageNet fits together, and its graph is made of tensors alone."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.efficientnet_lite import digest, graph_of
from jetsel.zoo.labels import Labels
from jetsel.zoo.pretrained import INT8, RANGES, RUNGS, SYMMETRIC, drawn
from jetsel.zoo.store import PULLED
from tests.unit.zoo.networks import lite_tensors


def test_there_are_a_thousand_classes_with_readable_names_and_an_answer_of_the_reference_for_each_rung() -> None:
    labels = Labels.read(PULLED / "labels.tsv")
    assert (len(labels.wnids), len(set(labels.names)), labels.names[282]) == (1000, 1000, "tiger cat")
    with np.load(PULLED / "expected.npz") as expected:
        names = [f"{variant}-{side_px}" for variant, side_px in RUNGS]
        assert set(expected) == {f"{name}{kind}" for name in names for kind in ("", INT8, f"{INT8}{SYMMETRIC}")}
        assert all(expected[name].shape == (2, 1000) and np.isfinite(expected[name]).all() for name in expected)
    with np.load(RANGES) as ranges:
        assert set(ranges) == set(names)
        assert all((ranges[name][:, 0] < ranges[name][:, 1]).all() for name in names)
    pictures = drawn(96)
    assert (pictures.shape, pictures.dtype) == ((2, 3, 96, 96), np.float32)
    assert -1 <= pictures.min() < pictures.max() <= 1


def test_one_graph_serves_every_size_and_pads_as_tensorflow_does() -> None:
    tensors = lite_tensors()
    session = onnxruntime.InferenceSession(graph_of(tensors, "lite0").SerializeToString())
    for side_px in (32, 40):
        logits, embedding = session.run(None, {"input": np.zeros((2, 3, side_px, side_px), np.float32)})
        assert (logits.shape, embedding.shape) == ((2, 5), (2, 8))
        assert logits == pytest.approx(embedding @ tensors["_fc.weight"].T + tensors["_fc.bias"], abs=1e-4)
    convolutions = [node for node in graph_of(tensors, "lite0").graph.node if node.op_type == "Conv"]
    padding = {attribute.s for node in convolutions for attribute in node.attribute if attribute.name == "auto_pad"}
    assert padding == {b"SAME_UPPER"}


def test_tensors_of_another_network_are_refused_and_every_one_counts_in_the_digest() -> None:
    tensors = lite_tensors()
    with pytest.raises(ManifestError, match=r"not the tensors of EfficientNet-lite2: '_blocks\.16"):
        graph_of(tensors, "lite2")
    turned = dict(reversed(tensors.items()))
    assert digest(turned) == digest(tensors)
    for name in ("_fc.bias", "_blocks.15._bn2.running_var"):
        assert digest(tensors | {name: tensors[name] + 1}) != digest(tensors)
