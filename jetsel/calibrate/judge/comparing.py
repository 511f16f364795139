"""The comparison for the report: results, bounds, operating points, chain, and the models' confidence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.chain import Lift
from jetsel.calibrate.judge.findings import Comparison, FittedChain, Reliability
from jetsel.calibrate.judge.kinds import kinds_found
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import PolicyReplay
from jetsel.policies.chain import NAME as CHAIN


def compared(
    judge: Judge,
    runs: Mapping[str, PolicyReplay],
    front: Mapping[str, PolicyReplay],
    lift: Lift | None,
    temperatures: Mapping[str, float],
    *,
    is_offered: bool,
) -> Comparison:
    """Return everything that is compared.

    runs: of each policy; front: of the operating points that are offered. lift: what the chain's neighbours add.
    is_offered: whether the calibration has the chain.
    """
    return Comparison(
        best_single=judge.best_single,
        policies={name: judge.result(name, run) for name, run in runs.items()},
        bounds=judge.bounds(),
        chain=None if lift is None else _chain(judge, runs[CHAIN], lift, is_offered=is_offered),
        front={name: judge.result(name, run) for name, run in front.items()},
        reliability=reliability(judge.recording, temperatures),
    )


def _chain(judge: Judge, run: PolicyReplay, lift: Lift, *, is_offered: bool) -> FittedChain:
    """Return what the premodel was fitted to, and what it costs."""
    return FittedChain(
        features=list(lift.reading.features),
        k=lift.reading.k,
        points=lift.points,
        error_points=lift.error_points,
        offered=is_offered,
        chooser_ms=judge.chooser_ms(run),
        chooser_mj=judge.chooser_mj(run) if judge.recording.knows_energy else None,
        kinds=kinds_found(judge.recording, run) if is_offered else [],
    )


BINS = 15


def reliability(recording: Recording, temperatures: Mapping[str, float]) -> list[Reliability]:
    """Return the error of each model's confidences over the whole recording."""
    right = recording.right
    before = recording.confidences(dict.fromkeys(recording.models, 1.0))
    after = recording.confidences(temperatures)
    rows = []
    for i, model in enumerate(recording.models):
        errors = [calibration_error(confidences[:, i], right[:, i]) for confidences in (before, after)]
        rows.append(Reliability(model, temperatures[model], *errors))
    return rows


def calibration_error(confidences: NDArray[np.float32], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Expected calibration error: the mean gap of confidence and accuracy over equal bins (Guo et al., eq. 3).

    confidences, right: (n,).
    """
    which = np.minimum((confidences * bins).astype(int), bins - 1)
    gaps = np.bincount(which, confidences - right, bins)  # of each bin, times the photographs in it
    return float(np.abs(gaps).sum() / len(right))
