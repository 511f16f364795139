"""A chain from its training photographs, for tests that do not make a whole calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel import Chain, Neighbours, fit_scaling, optimum_votes


def fit_chain(
    models: Sequence[str], features: NDArray[np.float32], right: NDArray[np.bool_], costs: Sequence[float], k: int
) -> Chain:
    """Links in the order of `models`; features (photographs, features), not scaled; right (photographs, models)."""
    scaling = fit_scaling(features)
    return Chain(models, optimum_votes(right, costs), Neighbours(scaling.apply(features)), scaling, k)
