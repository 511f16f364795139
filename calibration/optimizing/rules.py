"""Ways to make channels idle and to find them, and pruning by them. Çallı (2017), sections 2.2.2 and 2.2.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jetsel.train.optimize.activations import (
    MOST_CYCLES,
    PrunableNetwork,
    channel_scores,
    count_operations,
    prune_to,
    remove,
)

Penalty = Callable[[nn.Module], Tensor]
Train = Callable[[nn.Module, Penalty], None]

OUTLIER = -2.0  # deviations from the mean


class Rule:
    """The plain rule removes channels that are above zero at no more than `bound` of all places; subclasses vary it."""

    bound = 0.0

    def penalty(self, net: nn.Module) -> Tensor:  # noqa: ARG002  # other rules look at the weights
        """Return a term that training adds to the loss."""
        return torch.zeros(())

    def before_counting(self, net: nn.Module, draw: torch.Generator) -> None:
        """Change the weights before activations are counted."""

    def scores(self, shares: Tensor) -> Tensor:
        """Return the scores of a layer's channels; channels with at most the bound are removed. shares: (channels,)."""
        return shares


@dataclass(frozen=True)
class Regularised(Rule):
    """Adds `l1` times the sum of the weights' magnitudes to the loss (section 2.2.2, Regularized)."""

    l1: float = 1e-5

    def penalty(self, net: nn.Module) -> Tensor:
        """Return the magnitudes of the weights."""
        weights = [parameter.abs().sum() for parameter in net.parameters() if parameter.ndim > 1]
        return self.l1 * torch.stack(weights).sum()


@dataclass(frozen=True)
class Distorted(Regularised):
    """Adds noise x (1 - variance) to the weights, noise from -1 to 1 (section 2.2.2, Distorted).

    noise: deviations of the layer's weights; None for the thesis's own noise, which the small weights of a real network
    do not survive.
    """

    l1: float = 0.0
    noise: float | None = 0.2

    def before_counting(self, net: nn.Module, draw: torch.Generator) -> None:
        """Distort the weights."""
        for weight in (parameter for parameter in net.parameters() if parameter.ndim > 1):
            noise = (2 * torch.rand(weight.shape, generator=draw) - 1).to(weight.device)
            scale = 1.0 if self.noise is None else self.noise * float(weight.detach().std())
            with torch.no_grad():
                weight += scale * noise * (1 - float(weight.detach().var()))


class Outliers(Rule):
    """Removes channels whose share is below the mean of their layer less two deviations (section 2.2.3)."""

    bound = OUTLIER

    def scores(self, shares: Tensor) -> Tensor:
        """Return the distances from the layer's mean in deviations."""
        return (shares - shares.mean()) / shares.std().clamp(min=1e-9)


@dataclass(frozen=True)
class Combined(Outliers, Distorted):
    """Outliers of distorted weights that the loss keeps small (section 2.2.3, Regularized and Distorted Outlier)."""

    l1: float = 1e-5


RULES: dict[str, Rule] = {
    "plain": Rule(),
    "distorted": Distorted(),
    "l1": Regularised(),
    "outliers": Outliers(),
    "combined": Combined(),
}


def prune_by(rule: Rule, network: PrunableNetwork, train: Train, *, share: float | None = None, seed: int = 0) -> int:
    """Prune a network in place by a rule, in cycles, and return the number of removed channels.

    train: trains the network with a penalty added to its loss. share: as in `prune`. None: the rule's bound is fixed,
    every layer keeps one channel at least, and pruning ends when no channel is below the bound.
    """
    net, example, draw = network.net, network.example, torch.Generator().manual_seed(seed)
    due = None if share is None else share * count_operations(net, example)
    went = 0
    for _ in range(MOST_CYCLES):
        train(net, rule.penalty)
        rule.before_counting(net, draw)
        scores = [(layer, rule.scores(shares)) for layer, shares in channel_scores(network)]
        if not scores:
            break
        if due is None:
            gone = remove(net, example, [(layer, at_most(score, rule.bound)) for layer, score in scores])
        else:
            gone = prune_to(network, scores, due, rule.bound)
        went += gone
        if not gone or (due is not None and count_operations(net, example) <= due):
            break
    return went


def at_most(score: Tensor, bound: float) -> list[int]:
    """Return the channels of a layer whose score is at most the bound, but one, the least active first."""
    n_left = max(int((score > bound).sum()), 1)
    rows: list[int] = score.argsort(stable=True)[: len(score) - n_left].tolist()
    return rows
