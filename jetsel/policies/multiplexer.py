"""A policy that runs the cheapest model; a small network reads its output and selects the model to run next.

Source: Eshratifar and Pedram (2020), Algorithm 2 with the argmax. The whole cheapest model serves as the multiplexer's
first layers. One hidden layer reads its embedding and statistics of its probabilities. n images, m models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, MultiplexerFacts, PolicyPart
from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.kind import Kind, Table, TriedPoint
from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run, Steps, run_or_fall_back
from jetsel.premodel import worthiest

NAME = "multiplexer"
PRICES = (0.0, *np.geomspace(0.003, 1.0, 31))
"""Gain of probability that the cost of the most expensive model must bring; from 1 on, only the cheapest answers."""
HIDDEN, STATISTICS = 32, 6
PENALTIES = (0.03, 0.3, 1.0, 3.0)
"""Weights of the penalty on squared weights, compared in folds: about 1,000 images train as many numbers."""
FOLDS = 3
EPOCHS, BATCH, RATE = 20, 64, 2e-3
"""Training in ten folds takes about half as long as recording: 18 of 32 ms an image on ImageNet with six models."""
MOMENTS = (0.9, 0.999)  # of Adam (Kingma and Ba 2015)
SEED, TINY = 2020, 1e-6
ARRAY_NAMES = ("mean", "deviation", "hidden", "hidden_bias", "out", "out_bias")

Weights = dict[str, NDArray[np.float32]]


def network_inputs(probabilities: NDArray[np.float32], embedding: NDArray[np.floating] | None) -> NDArray[np.float32]:
    """Return the network's inputs from the cheapest model's outputs, (..., STATISTICS + width) float32.

    probabilities: (..., classes), at the model's temperature. embedding: (..., width), None if the model gives none.
    """
    top = -np.partition(-probabilities, min(5, probabilities.shape[-1]) - 1, axis=-1)[..., :5]
    top = np.sort(top, axis=-1)[..., ::-1]
    largest, second = top[..., 0], top[..., min(1, top.shape[-1] - 1)]
    logs = np.log(np.maximum(probabilities, TINY))
    statistics = (
        largest,
        largest - second,
        np.log(np.maximum(largest, TINY)) - np.log(np.maximum(second, TINY)),
        np.log(np.maximum(largest, TINY) / np.maximum(1 - largest, TINY)),
        -(probabilities * logs).sum(axis=-1),
        top.sum(axis=-1),
    )
    inputs = np.stack(statistics, axis=-1)
    if embedding is not None:
        inputs = np.concatenate([inputs, embedding], axis=-1)
    return inputs.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Readout:
    """The trained network. weights: ARRAY_NAMES -> float32; hidden: (inputs, HIDDEN), out: (HIDDEN + STATISTICS, m)."""

    weights: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        """Raise ValueError or LookupError if the arrays do not fit together."""
        inputs, hidden = self.weights["hidden"].shape
        width, models = self.weights["out"].shape
        shapes = ((inputs,), (inputs,), (inputs, hidden), (hidden,), (hidden + STATISTICS, models), (models,))
        weight_shapes = tuple(self.weights[name].shape for name in ARRAY_NAMES)
        if weight_shapes != shapes or inputs < STATISTICS:
            raise ValueError(f"the shapes {weight_shapes} of a readout's arrays do not match the width {width}")

    def chances(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability that each model is right, (..., m) float64. inputs: of `network_inputs`."""
        scaled = (inputs - self.weights["mean"]) / self.weights["deviation"]
        return _sigmoid(_forward(scaled, self.weights)[1].astype(np.float64))

    def chances_after(self, prediction: Prediction) -> NDArray[np.float64]:
        """Return `chances` after the cheapest model's prediction, (m,). Raises ValueError for a wrong embedding."""
        inputs = network_inputs(prediction.probabilities, prediction.embedding)
        width, expected = len(inputs) - STATISTICS, len(self.weights["mean"]) - STATISTICS
        if width != expected:
            raise ValueError(f"its embedding has {width} numbers, but {expected} are expected")
        return self.chances(inputs)


def fit_readout(
    inputs: NDArray[np.float32], right: NDArray[np.bool_], groups: NDArray[np.int64] | None = None
) -> tuple[Readout, NDArray[np.float32]]:
    """Return the trained network, and for each image the `chances` (n, m) by a network trained without it.

    inputs: (n, inputs). right: (n, m), which models were right. groups: (n,); images of one group are held out
    together; None: each image is its own. The penalty with the smallest loss on held-out images is used.
    """
    _, group = np.unique(np.arange(len(inputs)) if groups is None else groups, return_inverse=True)
    fold_of = np.random.default_rng(SEED).permutation(int(group.max()) + 1)[group] % FOLDS
    held_out = np.zeros((len(PENALTIES), *right.shape), np.float32)
    for fold in range(FOLDS):
        held = fold_of == fold
        if held.any() and not held.all():
            for index, readout in enumerate(_trained(inputs[~held], right[~held], PENALTIES)):
                held_out[index, held] = readout.chances(inputs[held])
    likely = np.where(right, held_out, 1 - held_out)
    best = int(np.log(np.maximum(likely, TINY)).mean(axis=(1, 2)).argmax())
    return _trained(inputs, right, PENALTIES[best : best + 1])[0], held_out[best]


def _trained(inputs: NDArray[np.float32], right: NDArray[np.bool_], penalties: Sequence[float]) -> list[Readout]:
    """Return a network for each penalty, trained with Adam, all at once; the same inputs give the same result.

    The weights have a first axis, that of the p penalties, during training.
    """
    draw = np.random.default_rng(SEED)
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + np.float32(TINY)
    scaled, target = (inputs - mean) / deviation, right.astype(np.float32)
    n, width = scaled.shape
    share = np.clip(target.mean(axis=0), 0.01, 0.99)
    initial = {
        "hidden": draw.normal(0, width**-0.5, (width, HIDDEN)),
        "hidden_bias": np.zeros((1, HIDDEN)),
        "out": np.zeros((HIDDEN + STATISTICS, right.shape[1])),
        "out_bias": np.log(share / (1 - share))[None],
    }
    weights = {name: np.repeat(one[None].astype(np.float32), len(penalties), axis=0) for name, one in initial.items()}
    decay = np.array(penalties, np.float32)[:, None, None] / np.float32(right.shape[1])
    adam = _Adam(weights, EPOCHS * -(-n // BATCH))
    for _ in range(EPOCHS):
        order = draw.permutation(n)
        for start in range(0, n, BATCH):
            rows = order[start : start + BATCH]
            adam.step(_gradients(scaled[rows], target[rows], weights, decay))
    scaling = {"mean": mean, "deviation": deviation}
    trained = {name: array[:, 0] if name.endswith("bias") else array for name, array in weights.items()}
    return [Readout(scaling | {name: array[p] for name, array in trained.items()}) for p in range(len(penalties))]


def _forward(scaled: NDArray[np.float32], weights: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Run the network: return the inputs of its last layer, (..., HIDDEN + STATISTICS), and the log odds, (..., m)."""
    hidden = np.maximum(scaled @ weights["hidden"] + weights["hidden_bias"], 0)
    features = np.concatenate([hidden, np.broadcast_to(scaled[..., :STATISTICS], (*hidden.shape[:-1], STATISTICS))], -1)
    return features, features @ weights["out"] + weights["out_bias"]


def _sigmoid(log_odds: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / (1 + exp(-x)) in a form that does not overflow."""
    return 0.5 * (1 + np.tanh(0.5 * log_odds))


def _gradients(
    scaled: NDArray[np.float32], target: NDArray[np.float32], weights: Weights, decay: NDArray[np.float32]
) -> Weights:
    """Return the gradients of mean cross-entropy plus penalty. target: (rows, m), 1 for right. decay: (p, 1, 1)."""
    features, log_odds = _forward(scaled, weights)
    wrong = (_sigmoid(log_odds) - target) / np.float32(target.size)
    back = (wrong @ weights["out"][:, :HIDDEN].swapaxes(1, 2)) * (features[..., :HIDDEN] > 0)
    return {
        "hidden": scaled.T @ back + decay * weights["hidden"],
        "hidden_bias": back.sum(axis=1, keepdims=True),
        "out": features.swapaxes(1, 2) @ wrong + np.float32(0.01) * decay * weights["out"],
        "out_bias": wrong.sum(axis=1, keepdims=True),
    }


class _Adam:
    """The optimiser Adam (Kingma and Ba 2015): updates weights in place, at a rate that falls to 0 as half a cosine."""

    def __init__(self, weights: Weights, steps: int) -> None:
        self._weights, self._steps, self._done = weights, steps, 0
        self._moments = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in weights.items()}

    def step(self, gradients: Weights) -> None:
        """Apply one update."""
        rate = RATE * 0.5 * (1 + np.cos(np.pi * self._done / self._steps))
        self._done += 1
        decay1, decay2 = MOMENTS
        unbiased = rate * (1 - decay2**self._done) ** 0.5 / (1 - decay1**self._done)
        for name, gradient in gradients.items():
            first, second = self._moments[name]
            first += (1 - decay1) * (gradient - first)
            second += (1 - decay2) * (gradient * gradient - second)
            self._weights[name] -= (unbiased * first / (np.sqrt(second) + 1e-8)).astype(np.float32)


@dataclass(frozen=True)
class CheapestFirst:
    """Policy that runs the cheapest model; its prediction decides whether another model runs, and which.

    models: cheapest first. chances: returns the probability that each is right, (m,); raises ValueError for an unusable
    prediction. costs: (m,), of running each next. price: gain of probability that one ms, or one mJ, must bring.
    """

    name: str
    models: tuple[str, ...]
    chances: Callable[[Prediction], NDArray[np.float64]]
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...] = ()

    @property
    def first_models(self) -> tuple[str, ...]:
        """The cheapest model, which always runs."""
        return self.models[:1]

    def __call__(self, photo: Evidence) -> Steps:
        """Run the cheapest model, and perhaps one more. If the first is unavailable, the fallback runs."""
        cheapest, substitute = self.models[0], photo.fallback or self.models[-1]
        prediction, why = yield from run_or_fall_back(cheapest, "its answer decides what runs next", substitute)
        if prediction.model != cheapest:
            return Decision(prediction, why)
        try:
            chances = self.chances(prediction)
        except ValueError as fault:
            return Decision(prediction, f"{prediction.model} returns no usable embedding: {fault}")
        index = int(worthiest(chances, self.costs, self.price))
        best = self.models[index]
        because = f"{best} is the best trade of accuracy and cost: right with a probability of {chances[index]:.2f}"
        if best == cheapest:
            return Decision(prediction, because)
        try:
            (better,) = yield Run((best,), because)
        except ModelUnavailableError:
            return Decision(prediction, f"{best} is unavailable; {prediction.model} is the best that ran")
        return Decision(better, because)


@dataclass(frozen=True, eq=False)
class LearnedMultiplexer:
    """The network and its held-out chances, both of `fit_readout`. prices: those to try, per ms or mJ."""

    readout: Readout
    held_out: NDArray[np.float32]
    prices: NDArray[np.float64]


class MultiplexerKind(Kind):
    """Fits the network, and tries it at each price: one is offered as `multiplexer`."""

    name = NAME

    def learn(self, train: Table) -> LearnedMultiplexer | None:
        """Fit the network; return None if there is only one model."""
        if len(train.models) < 2:
            return None
        readout, held_out = fit_readout(table_inputs(train), train.right, train.groups)
        return LearnedMultiplexer(readout, held_out, np.array(PRICES) / train.costs.max())

    def try_points(self, learned: LearnedMultiplexer, held: Table) -> list[TriedPoint]:
        """Return the results at each price on held-out images."""
        chances = learned.readout.chances(table_inputs(held))
        points, rows = [], np.arange(len(chances))
        for price in learned.prices:
            columns = worthiest(chances, additional_costs(held.costs), price)
            ran = np.zeros_like(held.right)
            ran[rows, columns] = ran[:, 0] = True
            points.append(TriedPoint(held.right[rows, columns], ran))
        return points

    def to_part(self, learned: LearnedMultiplexer, chosen: Any) -> PolicyPart:
        """Return the network and the price with index `chosen`, as they are stored."""
        return PolicyPart(MultiplexerFacts(float(learned.prices[chosen])), learned.readout.weights)

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy. Raises ValueError if the network predicts for another number of models."""
        models, costs = tuple(calibration.identities), additional_costs(calibration.cost_array)
        readout = Readout({name: part.arrays[name] for name in ARRAY_NAMES})
        n_models = len(readout.weights["out_bias"])
        if n_models != len(models):
            raise ValueError(f"it predicts for {n_models} models, and the calibration has {len(models)}")
        return {self.name: CheapestFirst(self.name, models, readout.chances_after, costs, part.facts.price)}


def table_inputs(table: Table) -> NDArray[np.float32]:
    """Return `network_inputs` for each image of a table, (n, inputs). Its first model is the cheapest."""
    return network_inputs(np.exp(table.log_odds[0]), table.embeddings)


def additional_costs(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the additional cost of each model after the cheapest has run, (m,)."""
    return np.where(np.arange(len(costs)) == 0, 0.0, costs)
