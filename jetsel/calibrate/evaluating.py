"""What a calibration gives on photographs that it was not made from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jetsel.calibrate.cross_validation import best_single
from jetsel.calibrate.findings import Result
from jetsel.calibrate.planning import TimeFeatures
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import replay_all
from jetsel.calibrate.results import Judge
from jetsel.errors import UnknownPolicyError
from jetsel.premodel import Calibration
from jetsel.selection.catalogue import catalogue
from jetsel.wire import Criterion


def evaluate(
    recording: Recording,
    calibration: Calibration,
    criterion: Criterion,
    wanted: Sequence[str],
    features_ms: TimeFeatures,
) -> tuple[dict[str, Result], dict[str, Result]]:
    """Replay the calibration's policies on a recording; return each policy's result, and the bounds.

    wanted: names of policies, none for all. Raises UnknownPolicyError for one that there is not.
    """
    policies = catalogue(recording.models, calibration, {})[criterion]
    unknown = [name for name in wanted if name not in policies]
    if unknown:
        raise UnknownPolicyError(f"there is no policy {', '.join(unknown)}; there are {', '.join(policies)}")
    single, _ = best_single(recording, criterion)
    rows = range(len(recording.classes))
    judge = Judge(recording, criterion, np.zeros(len(rows), np.int64), features_ms(calibration.features), single)
    results = {}
    for name in wanted or policies:
        run = replay_all(policies[name], recording, rows, criterion, calibration.temperatures, recording.models[-1])
        results[name] = judge.result(name, run)
    return results, judge.bounds()
