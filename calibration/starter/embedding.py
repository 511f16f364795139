"""A policy that the product does not have, beside those that it has: `python -m calibration.starter.embedding PHOTOS`.

It runs the cheapest model and lets the neighbours of its embedding say whether to go on. PHOTOS: as in
calibration.starter.calibrate. Nothing is saved: on both families a cascade was right more often in less time.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from calibration.starter.calibrate import compared, fitted, recorded, show
from jetsel.artefact.calibration import Calibration, PolicyPart
from jetsel.policies.kind import Kind, Table, TriedPoint
from jetsel.policies.multiplexer import CheapestFirst, additional_costs
from jetsel.policies.policy import Policy, Prediction
from jetsel.policies.registry import USUAL
from jetsel.premodel import Neighbours, worthiest
from jetsel.premodel.paths import PRICES
from jetsel.zoo import STARTER, scan

KS = (11, 31, 101)  # numbers of neighbours that are tried


class Weighing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a model's chance of being right is weighed against what it costs.

    price: how much chance a millisecond, or a millijoule if the calibration's objective is energy, must buy.
    k: neighbours whose share is the chance.
    """

    price: Annotated[float, Meta(ge=0)]
    k: Annotated[int, Meta(ge=1)] = 1


class EmbeddingKind(Kind):
    """Learned are the photographs themselves; tried is each number of neighbours at each price."""

    name = "embedding"
    facts = Weighing

    def learn(self, train: Table) -> Table | None:
        """Keep the photographs; None if the cheapest model gives no embeddings."""
        return None if train.embeddings is None else train

    def try_points(self, learned: Table, held: Table) -> list[TriedPoint]:
        """One point for each number of neighbours and price."""
        assert learned.embeddings is not None
        assert held.embeddings is not None
        points = learned.embeddings.astype(np.float32)
        most = min(max(KS), len(points))
        near, _ = Neighbours(points).nearest_many(held.embeddings.astype(np.float32), most)
        found = []
        for k in KS:
            chances = learned.right[near[:, : min(k, most)]].mean(axis=1)
            for price in PRICES / learned.costs.max():
                place = np.arange(len(chances)), worthiest(chances, additional_costs(learned.costs), price)
                ran = np.zeros_like(held.right)
                ran[place] = True
                ran[:, 0] = True
                found.append(TriedPoint(held.right[place], ran))
        return found

    def to_part(self, learned: Table, chosen: Any) -> PolicyPart:
        """Store the embeddings, who was right, and what was chosen."""
        which_k, which_price = divmod(chosen, len(PRICES))
        assert learned.embeddings is not None
        price = float(PRICES[which_price] / learned.costs.max())
        weighing = Weighing(price, min(KS[which_k], len(learned.right)))
        return PolicyPart(weighing, {"points": learned.embeddings, "right": learned.right})

    def make(self, part: PolicyPart, calibration: Calibration) -> dict[str, Policy]:
        """Return the policy."""
        models, costs = tuple(calibration.identities), additional_costs(calibration.cost_array)
        neighbours = Neighbours(part.arrays["points"].astype(np.float32))
        weighing, right, points = part.facts, part.arrays["right"], len(neighbours.points)
        if points != len(right) or weighing.k > points:
            raise ValueError(f"{points} points, {len(right)} rows and k {weighing.k} do not fit one another")
        chances = partial(_shares, neighbours, right, weighing.k)
        return {self.name: CheapestFirst(self.name, models, chances, costs, weighing.price)}


def _shares(neighbours: Neighbours, right: NDArray[np.bool_], k: int, seen: Prediction) -> NDArray[np.float64]:
    """Return how often each model was right on the k nearest of an embedding, (models,). ValueError without one."""
    if seen.embedding is None:
        raise ValueError("it gave no embedding")
    near, _ = neighbours.nearest(seen.embedding, k)
    found: NDArray[np.float64] = right[near].mean(axis=0)
    return found


def main() -> None:
    """Record what is not recorded yet, fit in ten folds, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="to fit on: a folder for each class")
    parser.add_argument("--work", type=Path, default=Path("build/calibrate"), help="recordings (%(default)s)")
    options = parser.parse_args()
    family = scan([STARTER]).families["starter"]
    loaded = recorded(family, options.photos, options.work / "calibrate.sqlite")
    found = fitted(family, loaded, kinds=(*USUAL, EmbeddingKind()))
    show(f"in ten folds over {found.calibration.images.count} photographs", compared(found))


if __name__ == "__main__":
    main()
