"""A small network that reads one model's answer, and says how likely each model of its family is right.

The multiplexer of Eshratifar and Pedram (2020), section II, whose first layers are a whole model: one hidden layer
stands on the model's embedding and on statistics of its probabilities. n images, m models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN = 32
STATISTICS = 6
PENALTIES = (0.03, 0.3, 1.0, 3.0)
"""Of the squares of the weights, which are tried in folds; a thousand images say little of a thousand numbers."""
FOLDS = 3
EPOCHS, BATCH, RATE = 20, 64, 2e-3
MOMENTS = (0.9, 0.999)  # of Adam (Kingma and Ba 2015)
SEED = 2020
TINY = 1e-6
NAMES = ("mean", "deviation", "hidden", "hidden_bias", "out", "out_bias")

Weights = dict[str, NDArray[np.float32]]


def inputs_of(probabilities: NDArray[np.float32], embedding: NDArray[np.floating] | None) -> NDArray[np.float32]:
    """Return what the network reads of a model's answers, (..., STATISTICS + width) float32.

    probabilities: (..., classes), at the model's temperature. embedding: (..., width), None if the model gives none.
    """
    top = -np.partition(-probabilities, min(5, probabilities.shape[-1]) - 1, axis=-1)[..., :5]
    top = np.sort(top, axis=-1)[..., ::-1]
    first, second = top[..., 0], top[..., min(1, top.shape[-1] - 1)]
    logs = np.log(np.maximum(probabilities, TINY))
    statistics = (
        first,
        first - second,
        np.log(np.maximum(first, TINY)) - np.log(np.maximum(second, TINY)),
        np.log(np.maximum(first, TINY) / np.maximum(1 - first, TINY)),
        -(probabilities * logs).sum(axis=-1),
        top.sum(axis=-1),
    )
    found = np.stack(statistics, axis=-1)
    if embedding is not None:
        found = np.concatenate([found, embedding], axis=-1)
    return found.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Readout:
    """The network. Each array is float32; hidden: (inputs, HIDDEN); out: (HIDDEN + STATISTICS, m)."""

    weights: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        """Raise ValueError or LookupError if the arrays do not fit together."""
        inputs, hidden = self.weights["hidden"].shape
        width, models = self.weights["out"].shape
        shapes = ((inputs,), (inputs,), (inputs, hidden), (hidden,), (hidden + STATISTICS, models), (models,))
        found = tuple(self.weights[name].shape for name in NAMES)
        if found != shapes or inputs < STATISTICS:
            raise ValueError(f"the shapes {found} of a readout's arrays do not match the width {width}")

    @property
    def models(self) -> int:
        """How many models it tells of."""
        return len(self.weights["out_bias"])

    def chances(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return how likely each model is right, (..., m) float64. inputs: see `inputs_of`."""
        scaled = (inputs - self.weights["mean"]) / self.weights["deviation"]
        return _sigmoid(_forward(scaled, self.weights)[1].astype(np.float64))


def fit_readout(
    inputs: NDArray[np.float32], right: NDArray[np.bool_], groups: NDArray[np.int64] | None = None
) -> tuple[Readout, NDArray[np.float32]]:
    """Return the network, and the chances (n, m) that those which had not seen an image give it.

    inputs: (n, inputs). right: (n, m), which model was right. groups: (n,); images of one group are never held out
    apart. The penalty is the one of least loss in folds.
    """
    _, group = np.unique(np.arange(len(inputs)) if groups is None else groups, return_inverse=True)
    fold_of = np.random.default_rng(SEED).permutation(int(group.max()) + 1)[group] % FOLDS
    held_out = np.zeros((len(PENALTIES), *right.shape), np.float32)
    for fold in range(FOLDS):
        held = fold_of == fold
        if held.any() and not held.all():
            for place, readout in enumerate(_trained(inputs[~held], right[~held], PENALTIES)):
                held_out[place, held] = readout.chances(inputs[held])
    best = min(range(len(PENALTIES)), key=lambda place: _loss(held_out[place], right))
    return _trained(inputs, right, PENALTIES[best : best + 1])[0], held_out[best]


def _loss(chances: NDArray[np.float32], right: NDArray[np.bool_]) -> float:
    """Return the mean cross-entropy of what was said."""
    likely = np.where(right, chances, 1 - chances)
    return float(-np.log(np.maximum(likely, TINY)).mean())


def _trained(inputs: NDArray[np.float32], right: NDArray[np.bool_], penalties: Sequence[float]) -> list[Readout]:
    """Train one network for each penalty by Adam, all at once: arrays have a first axis of p = len(penalties).

    The same images and penalty give the same network.
    """
    draw = np.random.default_rng(SEED)
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + np.float32(TINY)
    scaled, target = (inputs - mean) / deviation, right.astype(np.float32)
    n, width = scaled.shape
    share = np.clip(target.mean(axis=0), 0.01, 0.99)
    first = {
        "hidden": draw.normal(0, width**-0.5, (width, HIDDEN)),
        "hidden_bias": np.zeros((1, HIDDEN)),
        "out": np.zeros((HIDDEN + STATISTICS, right.shape[1])),
        "out_bias": np.log(share / (1 - share))[None],
    }
    weights = {name: np.repeat(one[None].astype(np.float32), len(penalties), axis=0) for name, one in first.items()}
    decay = np.array(penalties, np.float32)[:, None, None] / np.float32(right.shape[1])
    steps = EPOCHS * -(-n // BATCH)
    adam = _Adam(weights, steps)
    for _ in range(EPOCHS):
        order = draw.permutation(n)
        for start in range(0, n, BATCH):
            rows = order[start : start + BATCH]
            adam.step(_gradients(scaled[rows], target[rows], weights, decay))
    return [
        Readout(
            {"mean": mean, "deviation": deviation}
            | {name: one[place, 0] if name.endswith("bias") else one[place] for name, one in weights.items()}
        )
        for place in range(len(penalties))
    ]


def _forward(scaled: NDArray[np.float32], weights: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what the output layer sees, (..., HIDDEN + STATISTICS), and the log odds, (..., m)."""
    hidden = np.maximum(scaled @ weights["hidden"] + weights["hidden_bias"], 0)
    statistics = scaled[..., :STATISTICS]
    seen = np.concatenate([hidden, np.broadcast_to(statistics, (*hidden.shape[:-1], STATISTICS))], axis=-1)
    return seen, seen @ weights["out"] + weights["out_bias"]


def _sigmoid(log_odds: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / (1 + exp(-x)), which does not overflow this way."""
    return 0.5 * (1 + np.tanh(0.5 * log_odds))


def _gradients(
    scaled: NDArray[np.float32], target: NDArray[np.float32], weights: Weights, decay: NDArray[np.float32]
) -> Weights:
    """Return the gradients of the mean cross-entropy and of the penalty; decay: (p, 1, 1), of the squares."""
    seen, log_odds = _forward(scaled, weights)
    wrong = (_sigmoid(log_odds) - target) / np.float32(target.size)
    back = (wrong @ weights["out"][:, :HIDDEN].swapaxes(1, 2)) * (seen[..., :HIDDEN] > 0)
    return {
        "hidden": scaled.T @ back + decay * weights["hidden"],
        "hidden_bias": back.sum(axis=1, keepdims=True),
        "out": seen.swapaxes(1, 2) @ wrong + np.float32(0.01) * decay * weights["out"],
        "out_bias": wrong.sum(axis=1, keepdims=True),
    }


class _Adam:
    """Changes weights in place; the rate falls to 0 over the steps, as half a cosine."""

    def __init__(self, weights: Weights, steps: int) -> None:
        self._weights, self._steps, self._done = weights, steps, 0
        self._first = {name: np.zeros_like(one) for name, one in weights.items()}
        self._second = {name: np.zeros_like(one) for name, one in weights.items()}

    def step(self, gradients: Weights) -> None:
        """Go one step down."""
        rate = RATE * 0.5 * (1 + np.cos(np.pi * self._done / self._steps))
        self._done += 1
        one, two = MOMENTS
        unbiased = rate * (1 - two**self._done) ** 0.5 / (1 - one**self._done)
        for name, gradient in gradients.items():
            first, second = self._first[name], self._second[name]
            first += (1 - one) * (gradient - first)
            second += (1 - two) * (gradient * gradient - second)
            self._weights[name] -= (unbiased * first / (np.sqrt(second) + 1e-8)).astype(np.float32)
