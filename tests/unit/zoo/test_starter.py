"""The family that ships with jetsel is whole, small, and a ladder worth choosing from."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnxruntime
import pytest

from jetsel.zoo import STARTER, Family, Model, scan, verify
from jetsel.zoo.onnx_file import fields


@cache
def family() -> Family:
    zoo = scan([STARTER])
    assert zoo.broken == ()
    assert list(zoo.families) == ["starter"]
    return zoo.families["starter"]


@cache
def session(model: Model) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(model.path), providers=["CPUExecutionProvider"])


def opset(model: Model) -> int:
    """The version of ONNX's own operators, from ModelProto.opset_import (8): domain (1), version (2)."""
    for number, value in fields(memoryview(model.path.read_bytes())):
        if number == 8 and isinstance(value, memoryview):
            entry = dict(fields(value))
            version = entry[2]
            if not entry.get(1) and isinstance(version, int):
                return version
    raise AssertionError(f"{model.path.name} names no opset")


def test_four_to_six_models_that_span_150_times_the_cost() -> None:
    costs = [model.manifest.multiply_accumulates for model in family().models]
    assert 4 <= len(costs) <= 6
    assert costs[0] <= 3_000_000
    assert costs[-1] >= 150 * costs[0]


def test_a_hundred_classes_with_wordnet_identifiers() -> None:
    labels = family().labels
    assert len(labels.wnids) == len(labels.names) == 100
    assert all(wnid[0] == "n" and wnid[1:].isdigit() and len(wnid) == 9 for wnid in labels.wnids)
    assert labels.names[labels.wnids.index("n02123045")] == "tabby"


def test_the_weights_are_those_that_the_manifests_mean() -> None:
    assert family().models
    for model in family().models:
        verify(model)


def test_every_weights_file_has_a_manifest() -> None:
    assert {model.manifest.file for model in family().models} == {path.name for path in STARTER.glob("*.onnx")}


def test_all_of_it_is_at_most_30_mb() -> None:
    assert sum(path.stat().st_size for path in STARTER.rglob("*") if path.is_file()) <= 30_000_000


def test_finished_models_that_say_where_they_came_from() -> None:
    for model in family().models:
        assert "unfinished" not in model.manifest.version
        assert "calibration/starter" in model.manifest.source
        assert "research" in (model.manifest.notice or "")


def test_an_old_runtime_can_load_them() -> None:
    assert all(opset(model) <= 13 for model in family().models)


@pytest.mark.parametrize("photographs", [1, 3])
def test_every_model_answers_batches_with_finite_logits_and_embedding(photographs: int) -> None:
    for model in family().models:
        manifest = model.manifest
        shape = (photographs, 3, manifest.input.height_px, manifest.input.width_px)
        batch = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        assert [output.name for output in session(model).get_outputs()] == list(manifest.outputs)
        logits, embedding = session(model).run(None, {"image": batch})
        assert logits.shape == (photographs, 100)
        assert embedding.shape == (photographs, manifest.embedding_width)
        assert logits.dtype == embedding.dtype == np.float32
        assert np.isfinite(logits).all()
        assert np.isfinite(embedding).all()


def test_a_batch_answers_as_its_photographs_do_one_by_one() -> None:
    for model in family().models:
        batch = np.random.default_rng(4).standard_normal((3, 3, 64, 64)).astype(np.float32)
        together = session(model).run(["logits"], {"image": batch})[0]
        apart = np.concatenate([session(model).run(["logits"], {"image": batch[i : i + 1]})[0] for i in range(3)])
        np.testing.assert_allclose(together, apart, rtol=0, atol=1e-4)
