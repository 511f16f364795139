"""Ways to make channels idle and to find them beside the plain rule. Çallı (2017), sections 2.2.2 and 2.2.3."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jetsel.train.optimize.activations import Rule

OUTLIER = -2.0  # deviations from the mean


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
