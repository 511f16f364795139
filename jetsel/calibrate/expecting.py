"""What a calibration expects to see later, from its recording: how features lie, and how sure its models are."""

from __future__ import annotations

import numpy as np

from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run
from jetsel.policies.calibration import Calibration
from jetsel.policies.expected import Confidence, Expected, bins_of
from jetsel.premodel.cascades import log_softmax


def expected(recording: Recording, run: Run, calibration: Calibration) -> Expected:
    """Return the distributions. run: of the default policy under top1, on the photographs of the recording."""
    confidences = {}
    for place, model in enumerate(recording.models):
        reached = run.ran[:, place]
        if reached.any():
            logits = recording.logits[place][reached].astype(np.float32)
            sure = np.exp(log_softmax(logits, calibration.temperatures[model])).max(axis=1)
            confidences[model] = Confidence(float(sure.mean()), float(sure.std()))
    columns = zip(recording.feature_names, recording.features.T, strict=True)
    return Expected({name: bins_of(values) for name, values in columns}, confidences)
