"""Weighs how likely each model is right against what it costs: shared by the policies that know such chances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.policies.kind import Table, Tried
from jetsel.premodel import worthiest


class Weighing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's chance of being right is weighed against what it costs.

    price: how much chance a millisecond, or a millijoule where the calibration's objective is energy, must buy.
    k: neighbours asked, where chances are shares of neighbours.
    """

    price: Annotated[float, Meta(ge=0)]
    k: Annotated[int, Meta(ge=1)] = 1


@dataclass(frozen=True)
class Weigher:
    """A policy that runs the model which is most worth what it costs.

    chances: (width,) float32 -> (models,) float64, how likely each model is right. costs: (models,), in ms, or in mJ
    where energy was the objective; price: how much chance one of these must buy.
    """

    name: str
    models: tuple[str, ...]
    chances: Callable[[NDArray[np.float32]], NDArray[np.float64]]
    costs: NDArray[np.float64]
    price: float
    features: tuple[str, ...] = ()

    def choose(self, x: NDArray[np.float32]) -> tuple[str, str]:
        """Return the model, and the reason for choosing it."""
        chances = self.chances(x)
        best = int(worthiest(chances, self.costs, self.price))
        chance = f"right with a chance of {chances[best]:.2f}"
        return self.models[best], f"{self.models[best]} is most worth what it costs: {chance}"


def weighed(chances: NDArray[np.float64], costs: NDArray[np.float64], price: float, held: Table) -> Tried:
    """Run the model that is most worth its cost on each photograph.

    chances: (n, m), how likely each is right. costs: (m,), 0 for one that has run already. price: as `Weighing` has it.
    """
    chosen = worthiest(chances, costs, price)
    place = np.arange(len(chosen)), chosen
    ran = np.zeros_like(held.right)
    ran[place] = True
    return Tried(held.right[place], ran)
