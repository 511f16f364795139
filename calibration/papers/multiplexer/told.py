"""How well each reader tells, before any model ran, where the cheapest model is right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.reproduce import readers
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.metrics import area_under_curve
from jetsel.calibrate.recording import Recording
from jetsel.features import NAMES
from jetsel.premodel import fit_scaling

DRAWS, SEED = 2000, 2020


def areas(fit: Recording, test: Recording, said: dict[str, NDArray[np.float64]]) -> list[str]:
    """Return a row for each reader: AUC, and what the first of `said` has more. said: by multiplexers, (n,) each."""
    known, due = fit.right("top1")[:, 0], test.right("top1")[:, 0]
    found = dict(said)
    for name, (read, make) in readers().items():
        columns = [NAMES.index(feature) for feature in read]
        scaling = fit_scaling(fit.features[:, columns])
        reader = make()
        reader.fit(scaling.apply(fit.features[:, columns]), known)  # type: ignore[attr-defined]
        found[name] = reader.predict_proba(scaling.apply(test.features[:, columns]))[:, 1]  # type: ignore[attr-defined]
    confidence = test.confidences("top1", fit_temperatures(fit))[:, 0]
    found["its own confidence, once it ran"] = confidence.astype(np.float64)
    first, draw = next(iter(said)), np.random.default_rng(SEED)
    rows = [draw.integers(0, len(due), len(due)) for _ in range(DRAWS)]
    drawn = {
        name: np.array([area_under_curve(due[one], values[one]) for one in rows]) for name, values in found.items()
    }
    return [
        f"{name} | {area_under_curve(due, values):.3f} ({_interval(drawn[name])}) | "
        + ("" if name == first else f"{area_under_curve(due, found[first]) - area_under_curve(due, values):+.3f} ")
        + ("" if name == first else f"({_interval(drawn[first] - drawn[name], '+')})")
        for name, values in found.items()
    ]


def _interval(values: NDArray[np.float64], sign: str = "") -> str:
    low, high = np.quantile(values, [0.025, 0.975])
    return f"{low:{sign}.3f} to {high:{sign}.3f}"
