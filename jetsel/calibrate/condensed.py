"""A recording without its photographs, small enough to ship: thresholds are fitted again to another machine's times.

Of each photograph stay its class, the classes that a model had among its first eight, and 64 places that share what is
left of the probability evenly, at each model's calibrated temperature: so confidences, and which model is right, are
nearly those of the whole recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.recording import Recording
from jetsel.errors import CalibrationError
from jetsel.policies.calibration import ANSWERS
from jetsel.premodel.cascades import log_softmax
from jetsel.store import read_bounded
from jetsel.store.arrays import MAX_BYTES, pack, unpack

FIRST, REST = 8, 64
_NOTHING = -1e4  # a logit that float16 holds, and whose probability is 0


def condense(recording: Recording, temperatures: Mapping[str, float]) -> bytes:
    """Return the content of ANSWERS. What is not in it: paths, embeddings, energies."""
    models = recording.models
    logits = [log_softmax(said, temperatures[model]) for model, said in zip(models, recording.logits, strict=True)]
    first = np.stack([np.argsort(-said, axis=1)[:, :FIRST] for said in logits], axis=1)
    named = [np.unique(row) for row in first]
    width = max(map(len, named))
    no_class = width + REST - 1  # stands for a true class that no model names: one of the rest
    arrays: dict[str, NDArray[np.generic]] = {
        "features": recording.features,
        "groups": np.arange(len(named)) if recording.groups is None else recording.groups,
        "labels": recording.classes,
        "classes": np.array(
            [
                int(np.flatnonzero(classes == true)[0]) if true in classes else no_class
                for classes, true in zip(named, recording.classes, strict=True)
            ]
        ),
    }
    for model, said in zip(models, logits, strict=True):
        kept = np.full((len(named), width + REST), _NOTHING, np.float32)
        for row, classes in enumerate(named):
            others = np.delete(said[row], classes)
            kept[row, : len(classes)] = said[row, classes]
            if len(others):
                kept[row, width:] = np.logaddexp.reduce(others) - np.log(REST)
        arrays[f"logits.{model}"] = kept.astype(np.float16)
    return pack(arrays)


def read_condensed(folder: Path, costs_ms: Mapping[str, float]) -> Recording:
    """Return what was recorded of the models that `costs_ms` names, cheapest first, with these times.

    Its logits are divided by the calibrated temperatures already. Its class numbers are places, which mean something
    for one photograph alone. Raises CalibrationError.
    """
    path = folder / ANSWERS
    try:
        arrays = unpack(read_bounded(path, MAX_BYTES))
        return Recording(
            models=tuple(costs_ms),
            logits=np.stack([arrays[f"logits.{model}"] for model in costs_ms]),
            classes=arrays["classes"].astype(np.int64),
            features=arrays["features"].astype(np.float32),
            costs_ms=costs_ms,
            groups=arrays["groups"].astype(np.int64),
            is_scaled=True,
        )
    except (OSError, ValueError, LookupError) as error:
        raise CalibrationError(f"{path}: cannot be read: {error}; install jetsel again") from error
