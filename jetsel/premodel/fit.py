"""Builds chains, from arrays or from a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import CalibrationError
from jetsel.premodel.artefact import Calibration, Soundness
from jetsel.premodel.chain import Chain, optimum_votes, right_votes
from jetsel.premodel.neighbours import Neighbours
from jetsel.premodel.scaling import Scaling, fit_scaling

Votes = Literal["optimum", "right"]
"""What link i votes on: 'model i is this photograph's optimum', or 'model i is right'."""


def fit_chain(
    models: Sequence[str],
    features: NDArray[np.float32],
    right: NDArray[np.bool_],
    costs_ms: Sequence[float],
    k: int,
    votes: Votes,
) -> Chain:
    """Fit a chain whose links stand in the order of `models`.

    features: (photographs, features) float32, not scaled. right: (photographs, models). costs_ms: one a model.
    Raises ValueError where these do not fit one another.
    """
    scaling = fit_scaling(features)
    return Chain(models, _votes(right, costs_ms, votes), Neighbours(scaling.apply(features)), scaling, k)


def chain_from(calibration: Calibration, criterion: str, votes: Votes) -> Chain:
    """Return the chain of a calibration for one criterion; it takes features that are not scaled.

    Raises CalibrationError where the calibration was not made for the criterion.
    """
    if criterion not in calibration.right:
        known = ", ".join(calibration.right)
        raise CalibrationError(f"the calibration knows {known}, not {criterion!r}: recalibrate with it")
    models = list(calibration.model_sha256)
    links = calibration.links.get(criterion, tuple(models))
    columns = [models.index(model) for model in links]
    table = _votes(calibration.right[criterion][:, columns], [calibration.costs[model] for model in links], votes)
    scaling = Scaling(calibration.minimum, calibration.maximum)
    soundness = calibration.soundness.get(criterion, Soundness()) if votes == "optimum" else Soundness()
    return Chain(links, table, Neighbours(calibration.points), scaling, calibration.k, soundness)


def _votes(right: NDArray[np.bool_], costs_ms: Sequence[float], votes: Votes) -> NDArray[np.bool_]:
    return optimum_votes(right, costs_ms) if votes == "optimum" else right_votes(right)
