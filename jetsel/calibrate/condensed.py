"""A recording without its photographs, small enough to ship: thresholds are fitted again to another machine's times.

Of each photograph stay its class, the classes that a model had among its first eight, and 64 places that share what is
left of the probability evenly, at each model's calibrated temperature: so confidences, and which model is right, are
nearly those of the whole recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.base.arrays import MAX_BYTES, pack, unpack
from jetsel.base.errors import CalibrationError
from jetsel.base.files import read_bounded
from jetsel.calibrate.record.recording import Recording
from jetsel.policies.calibration import ANSWERS, Calibration
from jetsel.premodel.cascades import log_softmax

FIRST, REST = 8, 64
_NOTHING = -1e4  # a logit that float16 holds, and whose probability is 0


@dataclass(frozen=True)
class Condensed:
    """One model in ANSWERS: its Manifest.identity, and the temperature that its logits are divided by."""

    identity: str
    temperature: float


def condense(
    recording: Recording, temperatures: Mapping[str, float], identities: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Return the content of ANSWERS. What is not in it: paths, embeddings, energies.

    identities: of models that the calibration beside it may not know.
    """
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
    for model, identity in identities.items():
        arrays[f"identity.{model}"] = np.frombuffer(bytes.fromhex(identity), np.uint8)
        arrays[f"temperature.{model}"] = np.array([temperatures[model]])
    return pack(arrays)


def read_models(folder: Path, calibration: Calibration) -> dict[str, Condensed]:
    """Return the models that ANSWERS says enough of: those of the calibration beside it, and those with an identity.

    Raises CalibrationError.
    """
    arrays = _read(folder)
    known = {
        name: Condensed(identity, calibration.temperatures[name]) for name, identity in calibration.identities.items()
    }
    kind = "identity."
    return known | {
        key.removeprefix(kind): Condensed(
            values.tobytes().hex(), float(arrays[f"temperature.{key.removeprefix(kind)}"][0])
        )
        for key, values in arrays.items()
        if key.startswith(kind)
    }


def read_condensed(folder: Path, costs_ms: Mapping[str, float]) -> Recording:
    """Return what was recorded of the models that `costs_ms` names, cheapest first, with these times.

    Its logits are divided by the calibrated temperatures already. Its class numbers are places, which mean something
    for one photograph alone. Raises CalibrationError.
    """
    arrays = _read(folder)
    try:
        return Recording(
            models=tuple(costs_ms),
            logits=np.stack([arrays[f"logits.{model}"] for model in costs_ms]),
            classes=arrays["classes"].astype(np.int64),
            features=arrays["features"].astype(np.float32),
            costs_ms=costs_ms,
            groups=arrays["groups"].astype(np.int64),
            is_scaled=True,
        )
    except (ValueError, LookupError) as error:
        raise _unreadable(folder, error) from error


def read_labels(folder: Path) -> NDArray[np.int64] | None:
    """Return the true class number of each photograph in ANSWERS, (n,); None if it was made before they were kept.

    Raises CalibrationError.
    """
    labels = _read(folder).get("labels")
    return None if labels is None else labels.astype(np.int64)


def _read(folder: Path) -> dict[str, NDArray[Any]]:
    try:
        return unpack(read_bounded(folder / ANSWERS, MAX_BYTES))
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> CalibrationError:
    return CalibrationError(f"{folder / ANSWERS}: cannot be read: {error}; install jetsel again")
