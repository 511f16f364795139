"""What the policies of a multiplexer share: asking it, and reading what it says (Eshratifar and Pedram, section II)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, Prediction, Run, Steps, run_or_fall_back

if TYPE_CHECKING:
    from jetsel.policies.calibration import Calibration

Loss = Literal["right", "ensemble"]
"""What a multiplexer was trained on: which models are right, or what the models' weighted answers lose (7)."""

LEAST = 1e-30  # float32 rounds the probabilities of very unequal logits to nothing: then a chance is 0 and no NaN


def chances_of(probabilities: NDArray[np.floating], loss: Loss) -> NDArray[np.float64]:
    """Return what a multiplexer says of its models, (..., N), by its softmax, (..., N + 1), the last of a logit of 0.

    Under "right", how likely each model is right: p / (p + last) is the sigmoid of its logit. Under "ensemble", the
    models' weights, which add up to 1: equation 6.
    """
    odds = probabilities.astype(np.float64)
    each = odds[..., :-1]
    whole = each + odds[..., -1:] if loss == "right" else each.sum(axis=-1, keepdims=True)
    chances: NDArray[np.float64] = each / np.maximum(whole, LEAST)
    return chances


@dataclass(frozen=True, eq=False)
class Multiplexer:
    """A network that says which models to run. costs: (N,) of its models, ms or mJ, once it has run."""

    name: str
    models: tuple[str, ...]
    costs: NDArray[np.float64]
    loss: Loss

    @classmethod
    def of(cls, calibration: Calibration) -> Multiplexer:
        """Return the one that a calibration was made with; raises ValueError where it was made without."""
        mux = calibration.multiplexer
        if mux is None:
            raise ValueError("the calibration names no multiplexer")
        return cls(mux.name, mux.models, np.array([calibration.costs[model] for model in mux.models]), mux.loss)

    @property
    def strongest(self) -> str:
        """The most expensive of its models."""
        return self.models[int(self.costs.argmax())]

    def ask(self) -> Generator[Run, tuple[Prediction, ...], NDArray[np.float64] | None]:
        """Run it, and return what it says of each model, (N,); None where it is unavailable."""
        try:
            (said,) = yield Run((self.name,), "it says which model to run")
        except ModelUnavailableError:
            return None
        return chances_of(said.probabilities, self.loss)

    def words(self, which: int, chances: NDArray[np.float64]) -> str:
        """Return what it says of one model, for people."""
        what = "a chance of {:.2f} to be right" if self.loss == "right" else "a weight of {:.2f}"
        return f"{self.name} gives {self.models[which]} {what.format(chances[which])}"

    def without(self, photo: Evidence) -> Steps:
        """Answer where it is unavailable: by the fallback, or by the most expensive of its models."""
        model = photo.fallback or self.strongest
        because = f"{self.name} is unavailable; {model} answers without it"
        seen, because = yield from run_or_fall_back(model, because, self.strongest)
        return Decision(seen, because)
