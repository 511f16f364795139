"""Table I: how many photographs stay on the device where accuracy is to be the edge's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.recording import Recording
from jetsel.policies.multiplexer_edge import fit_margin

PAPER = 68.0


def local(fit: Recording, test: Recording) -> list[str]:
    """Return a row for each model here but the most expensive, which is the edge's: what stays here, and is right.

    Margins are fitted on `fit`, so that as many are right there as where all go to the edge. Beside the multiplexer
    stands the model's own confidence, which needs it to run on every photograph.
    """
    rows = []
    temperatures = fit_temperatures(fit)
    for name in fit.models[:-1]:
        behind = {
            "multiplexer": [_behind(one, name) for one in (fit, test)],
            "its own confidence": [
                -one.confidences("top1", temperatures)[:, one.models.index(name)].astype(np.float64)
                for one in (fit, test)
            ],
        }
        for reader, (known, due) in behind.items():
            ours, theirs = (fit.right("top1")[:, fit.models.index(one)] for one in (name, fit.models[-1]))
            stays = due <= fit_margin(known, ours, theirs)
            here, edge = (test.right("top1")[:, test.models.index(one)] for one in (name, test.models[-1]))
            gain, low, high = bootstrap(np.where(stays, here, edge).astype(float) - edge)
            share, share_low, share_high = bootstrap(stays.astype(float))
            rows.append(
                f"{name} | {reader} | {share:.1f} % ({share_low:.1f} to {share_high:.1f}) | "
                f"{100 * np.where(stays, here, edge).mean():.2f} | {gain:+.2f} ({low:+.2f} to {high:+.2f})"
            )
    return rows


def figure_1(test: Recording) -> list[str]:
    """Return the matrix of Figure 1: the percentage that a row's model gets right and a column's does not."""
    right = test.right("top1")
    return [
        f"{name} | " + " | ".join(f"{100 * (right[:, a] & ~right[:, b]).mean():.1f}" for b in range(len(test.models)))
        for a, name in enumerate(test.models)
    ]


def _behind(recording: Recording, name: str) -> NDArray[np.float64]:
    """How much smaller the chance of the model is than that of the edge's, (n,)."""
    mux = recording.multiplexer
    assert mux is not None
    behind: NDArray[np.float64] = (
        mux.chances[:, mux.models.index(recording.models[-1])] - mux.chances[:, mux.models.index(name)]
    )
    return behind
