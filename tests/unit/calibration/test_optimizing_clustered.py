"""Shared weights make a small file that answers nearly as before."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from calibration.optimizing.clustered import clustered, clusters
from jetsel.zoo import STARTER
from jetsel.zoo.graph import for_size
from jetsel.zoo.onnx_model import read_model
from tests.unit.zoo.test_graph import answers

SHOWN = np.random.default_rng(5).normal(size=(16, 3, 64, 64)).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> ModelProto:
    return for_size(read_model(STARTER / "s.onnx"), 64, 64)


def test_shared_weights_answer_nearly_the_same_in_a_quarter_of_the_bytes(model: ModelProto) -> None:
    made = clustered(model)
    assert len(made.SerializeToString()) < 0.3 * len(model.SerializeToString())
    before, after = answers(model, SHOWN), answers(made, SHOWN)
    assert np.abs(after - before).max() < 0.05 * np.ptp(before)


def test_clusters_keep_what_is_rare_and_large() -> None:
    numbers = np.random.default_rng(6).normal(0, 0.01, 20_000).astype(np.float32)
    numbers[:3] = (-4.0, 2.5, 4.0)
    table, rows = clusters(numbers)
    assert (table.dtype, rows.dtype, len(table)) == (np.float32, np.uint8, 256)
    np.testing.assert_allclose(table[rows[:3]], numbers[:3], atol=0.05)
    assert np.abs(table[rows] - numbers).mean() < 0.001
