"""A multiplexer is made of first layers: where they are cut, what it learns, what it says of what it has not seen."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch

from jetsel.calibrate.metrics import area_under_curve
from jetsel.errors import CalibrationError
from jetsel.train.multiplexer import making
from jetsel.train.multiplexer.stems import cuts, stem_of
from jetsel.train.multiplexer.weigher import Examples, cross_fitted, fit, losses, temperature_of
from jetsel.train.optimize.graph import for_size, operations
from jetsel.train.optimize.photographs import normalised
from jetsel.zoo import STARTER
from jetsel.zoo.manifest import read_manifest
from jetsel.zoo.onnx_model import read_model

pytestmark = pytest.mark.export
MANIFEST = read_manifest(STARTER / "xs.json")
MODEL = for_size(read_model(STARTER / "xs.onnx"), 64, 64)
N = 200


def levels() -> np.ndarray:
    """Grey squares: dark ones first, bright ones last."""
    noise = np.random.default_rng(1).integers(0, 30, (N, 3, 64, 64), dtype=np.uint8)
    return noise + (np.arange(N) >= N // 2).astype(np.uint8)[:, None, None, None] * 150


def examples_of(pooled: np.ndarray) -> Examples:
    """The first model is right on what is dark, the second always; the third is right on every other photograph."""
    right = np.stack([np.arange(N) < N // 2, np.ones(N, bool), np.arange(N) % 2 == 0], axis=1)
    return Examples(pooled, right, np.where(right, 0.9, 0.1).astype(np.float32), np.array([1.0, 2.0, 4.0]))


def ignored(_what: str, _done: int, _total: int) -> None: ...


def folds() -> np.ndarray:
    return np.arange(N) // 2 % 5


def test_cuts_see_the_whole_photograph_and_cost_no_more_than_the_model() -> None:
    found = cuts(MODEL, operations(MODEL))
    assert [one.share for one in found] == sorted(one.share for one in found)
    assert all(0 < one.operations <= operations(MODEL) for one in found)
    for one in found:
        assert stem_of(MODEL, one)(torch.zeros(2, 3, 64, 64)).shape[:2] == (2, one.channels)


def test_a_cut_of_a_large_model_costs_no_more_than_the_cheapest_and_else_is_refused() -> None:
    large = for_size(read_model(STARTER / "s.onnx"), 64, 64)
    assert all(one.operations <= operations(MODEL) for one in cuts(large, operations(MODEL)))
    with pytest.raises(CalibrationError, match="--stem"):
        cuts(large, 1000)


def test_a_stem_says_what_the_model_itself_has_at_that_place() -> None:
    deepest = cuts(MODEL, operations(MODEL))[-1]
    shown = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours = stem_of(MODEL, deepest)(shown).mean((2, 3)).numpy()
    theirs = onnxruntime.InferenceSession(str(STARTER / "xs.onnx")).run(["embedding"], {"image": shown.numpy()})[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_what_is_made_is_said_again_by_the_file_and_knows_what_can_be_known() -> None:
    made = making.make(MODEL, operations(MODEL), MANIFEST.input, levels(), examples_of, "right", folds(), 1, ignored)
    session = onnxruntime.InferenceSession(made.content)
    said = session.run(["logits"], {"image": normalised(levels(), MANIFEST.input)})[0]
    right = examples_of(np.zeros((N, 1), np.float32)).right
    assert said.shape == made.held_out.shape == (N, 4)
    assert (said[:, 3] == 0).all()
    assert (made.held_out[:, 3] == 0).all()
    assert area_under_curve(right[:, 0], said[:, 0]) > 0.99
    assert area_under_curve(right[:, 0], made.held_out[:, 0]) > 0.99
    assert made.held_out[:, 1].min() > 0  # always right: more likely than not
    assert np.abs(made.held_out[:, 2]).max() < np.abs(made.held_out[:, 0]).max()  # nothing tells


def test_nothing_is_said_of_a_photograph_by_what_learned_from_it() -> None:
    """Of noise, one that has seen it tells right from wrong, and one that has not guesses."""
    draw = np.random.default_rng(3)
    right = draw.random((N, 2)) < 0.5
    noise = Examples(
        draw.normal(size=(N, 150)).astype(np.float32), right, right.astype(np.float32), np.array([1.0, 2.0])
    )
    with torch.no_grad():
        seen = fit(noise, "right", 0.003, 1)(torch.from_numpy(noise.pooled)).numpy()
    held = cross_fitted(noise, "right", 0.003, folds(), 1)
    assert area_under_curve(right[:, 0], seen[:, 0]) > 0.8
    assert area_under_curve(right[:, 0], held[:, 0]) < 0.65
    assert temperature_of(held, noise, "right") > 1.5  # which makes it less sure


def test_the_papers_loss_weighs_what_gives_the_true_class_most() -> None:
    pooled = np.linspace(-1, 1, N).astype(np.float32)[:, None]
    examples = examples_of(pooled)
    with torch.no_grad():
        weights = fit(examples, "ensemble", 0.003, 1)(torch.from_numpy(pooled)).softmax(1).numpy()
    assert (weights.argmax(axis=1) == 1).all()  # the one that is always right, whatever it costs
    same = np.zeros((N, 3), np.float32)
    assert losses(same, examples, "ensemble")[0] == pytest.approx(-np.log((0.9 + 0.9 + 0.9) / 3))
