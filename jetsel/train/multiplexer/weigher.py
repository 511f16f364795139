"""The last layers of a multiplexer: meta-features, and what each model weighs by them (equations 5 to 8).

N models, n photographs, C channels of the stem. What is learned from stands in memory, so that training takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as all torch code reads

from jetsel.train.multiplexer.losses import distillation, ensemble

Loss = Literal["right", "ensemble"]
META = 32
"""Meta-features: M of equation (5), and d of (8), where each is compared with an embedding."""
STEPS = 60  # of L-BFGS
PENALTIES = (0.003, 0.01, 0.03, 0.1)
"""Of the weights' squares, tried one by one: a thousand photographs say little of a thousand channels."""
DISTILLED = 0.3  # of the loss is (8), where there are projected embeddings; the paper adds the two
TEMPERATURES = np.geomspace(0.2, 20.0, 60)
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Examples:
    """What is learned from.

    pooled: (n, C) float32, the stem's channels, each the mean over its places. right: (n, N) bool. likely: (n, N)
    float32, what each model gives the true class. costs: (N,) float64 of the models, in whatever unit. projected: (n,
    N, META) float32 of models that were trained jointly, None of others.
    """

    pooled: NDArray[np.float32]
    right: NDArray[np.bool_]
    likely: NDArray[np.float32]
    costs: NDArray[np.float64]
    projected: NDArray[np.float32] | None = None

    def take(self, rows: NDArray[np.bool_]) -> Examples:
        """The same of some photographs."""
        projected = None if self.projected is None else self.projected[rows]
        return Examples(self.pooled[rows], self.right[rows], self.likely[rows], self.costs, projected)


class Weigher(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """(n, C) -> (n, N): the exponents of equation (6), or with the loss `right` the log odds that each model is right.

    Costs divide what the meta-features say (5), relative to the cheapest model's; not so the log odds: how likely a
    model is right does not depend on what it costs, which is weighed when one is chosen.
    """

    def __init__(self, examples: Examples, loss: Loss) -> None:
        super().__init__()
        pooled = torch.from_numpy(examples.pooled)
        relative = examples.costs / examples.costs.min() if loss == "ensemble" else np.ones(len(examples.costs))
        self.register_buffer("mean", pooled.mean(0))
        self.register_buffer("deviation", pooled.std(0) + 1e-6)
        self.register_buffer("costs", torch.from_numpy(relative).float())
        self.register_buffer("temperature", torch.ones(()))
        self.meta = nn.Linear(pooled.shape[1], META)
        self.weigh = nn.Linear(META, len(examples.costs), bias=loss == "right")

    def features(self, pooled: Tensor) -> Tensor:
        """Return the meta-features, (n, META)."""
        found: Tensor = self.meta((pooled - self.mean) / self.deviation)
        return found

    def forward(self, pooled: Tensor) -> Tensor:
        """See the class."""
        weights: Tensor = self.weigh(self.features(pooled)) / (self.costs * self.temperature)
        return weights


def fit(examples: Examples, loss: Loss, penalty: float, seed: int) -> Weigher:
    """Train one on all of the examples; its temperature is 1 still."""
    torch.manual_seed(seed)
    net = Weigher(examples, loss)
    pooled, right, likely = (torch.from_numpy(one) for one in (examples.pooled, examples.right, examples.likely))
    projected = None if examples.projected is None else torch.from_numpy(examples.projected)
    optimiser = torch.optim.LBFGS(net.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def missed() -> Tensor:
        optimiser.zero_grad(set_to_none=True)
        total = _missed(net(pooled), right, likely, loss)
        if projected is not None:
            total = (1 - DISTILLED) * total + DISTILLED * distillation(net.features(pooled), projected)
        total = total + penalty * (net.meta.weight.square().sum() + net.weigh.weight.square().sum())
        total.backward()
        return total

    optimiser.step(missed)
    net.eval()
    return net


def cross_fitted(
    examples: Examples, loss: Loss, penalty: float, fold_of: NDArray[np.int64], seed: int
) -> NDArray[np.float32]:
    """Return what those that were trained on the other folds say of each photograph, (n, N) float32."""
    found = np.zeros(examples.right.shape, np.float32)
    for fold in np.unique(fold_of):
        held = fold_of == fold
        trained = fit(examples.take(~held), loss, penalty, seed)
        with torch.no_grad():
            found[held] = trained(torch.from_numpy(examples.pooled[held])).numpy()
    return found


def losses(said: NDArray[np.float32], examples: Examples, loss: Loss) -> NDArray[np.float64]:
    """Return the loss of each photograph, (n,), of what was said of them, (n, N)."""
    odds, right = said.astype(np.float64), examples.right
    if loss == "right":
        each = np.logaddexp(0.0, np.where(right, -odds, odds)).mean(axis=1)
    else:
        weights = np.exp(odds - odds.max(axis=1, keepdims=True))
        mixed = (weights * examples.likely).sum(axis=1) / weights.sum(axis=1)
        each = -np.log(np.maximum(mixed, LEAST))
    return np.asarray(each)


def temperature_of(said: NDArray[np.float32], examples: Examples, loss: Loss) -> float:
    """Return what divides the numbers said of photographs held out, (n, N), for the least loss."""
    return float(min(TEMPERATURES, key=lambda one: losses(said / np.float32(one), examples, loss).mean()))


def _missed(weights: Tensor, right: Tensor, likely: Tensor, loss: Loss) -> Tensor:
    if loss == "right":
        return F.binary_cross_entropy_with_logits(weights, right.float())
    return ensemble(weights.softmax(1), likely)
