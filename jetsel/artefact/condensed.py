"""A recording without images, small enough to ship, from which thresholds are fitted to another machine's latencies.

It holds for each image the true class, the logits of all classes among any model's first three, and the probability of
all other classes together, which the reader spreads evenly over 64 columns, at each model's calibrated temperature.
Confidences, and which model is right, are therefore nearly those of the whole recording. Features are rounded to
float16, logits to six significant bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.base.arrays import MAX_BYTES, pack, unpack
from jetsel.base.errors import CalibrationError
from jetsel.base.files import read_bounded
from jetsel.premodel.cascades import Outputs, log_softmax, replay_cascade, tried_cascades

TOP_CLASSES, REST_PLACES = 3, 64
FEW_CLASSES = 16  # families with fewer classes keep all of them
_KEPT_BITS, _HALF_STEP = 0xFFE0, 0x10  # a float16 without the last five bits of its fraction, for compression
RESTORE = "install jetsel again"
_NO_LOGIT = -1e4  # fits into float16, and its probability is 0


class AnsweredModel(NamedTuple):
    """One model in the file ANSWERS: the hash of its files (Manifest.identity), and the divisor of its logits."""

    identity: str
    temperature: float


@dataclass(frozen=True, eq=False)
class RecordedAnswers:
    """Condensed answers of m models on n images, from the file ANSWERS, and the models' latencies.

    logits: (m, n, c) float16 or float32, already divided by the temperatures; the classes of the c columns differ from
    image to image. classes: (n,) column of the true class. features: (n, f) float32. groups: (n,), near-duplicates
    share a number. costs_ms: latency by model, in the order of `models`. labels: (n,) the true class numbers.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float16] | NDArray[np.float32]
    classes: NDArray[np.int64]
    features: NDArray[np.float32]
    groups: NDArray[np.int64]
    costs_ms: Mapping[str, float]
    labels: NDArray[np.int64]

    def cascades(self, costs_ms: Sequence[float]) -> list[tuple[tuple[int, ...], NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return each model and pair as a cascade by rising time: model indexes, right answers (n,), who ran (n, m)."""
        order = sorted(range(len(self.models)), key=lambda column: (costs_ms[column], self.models[column]))
        log_odds = [log_softmax(self.logits[column], 1.0) for column in order]
        outputs = Outputs(log_odds, self.classes, np.array([costs_ms[column] for column in order]))
        tried = tried_cascades(outputs).cascades
        return [(tuple(order[rung] for rung in cascade.rungs), *replay_cascade(cascade, outputs)) for cascade in tried]


def condense(
    logits: Mapping[str, NDArray[np.floating]],
    classes: NDArray[np.int64],
    features: NDArray[np.float32],
    groups: NDArray[np.int64] | None,
    temperatures: Mapping[str, float],
    identities: Mapping[str, str],
) -> bytes:
    """Return the content of the file ANSWERS for n images.

    logits: model -> (n, classes of the family). classes: (n,) the true class numbers. features: (n, f). groups: (n,),
    near-duplicates share a number; None if there are none. temperatures: model -> divisor of its logits. identities:
    model -> Manifest.identity, for models that the calibration beside the file may lack.
    """
    scaled = {model: log_softmax(model_logits, temperatures[model]) for model, model_logits in logits.items()}
    n_top = TOP_CLASSES if next(iter(scaled.values())).shape[1] > FEW_CLASSES else FEW_CLASSES
    top = np.stack([np.argsort(-model_logits, axis=1)[:, :n_top] for model_logits in scaled.values()], axis=1)
    stored_classes = [np.unique(row) for row in top]
    width = max(map(len, stored_classes))
    rest_column = width + REST_PLACES - 1  # for a true class that no model ranks high
    columns = [
        int(np.flatnonzero(stored == true)[0]) if true in stored else rest_column
        for stored, true in zip(stored_classes, classes, strict=True)
    ]
    arrays: dict[str, NDArray[np.generic]] = {
        "features": features.astype(np.float16),
        "groups": np.arange(len(stored_classes)) if groups is None else groups,
        "labels": classes,
        "classes": np.array(columns),
    }
    for model, model_logits in scaled.items():
        arrays[f"logits.{model}"] = _condense(model_logits, stored_classes, width).T
    for model, identity in identities.items():
        arrays[f"identity.{model}"] = np.frombuffer(bytes.fromhex(identity), np.uint8)
        arrays[f"temperature.{model}"] = np.array([temperatures[model]])
    return pack(arrays)


def _condense(logits: NDArray[np.float32], stored: Sequence[NDArray[np.int64]], width: int) -> NDArray[np.float16]:
    """Return one model's log-probabilities of each image's stored classes, then of all others: (n, width + 1)."""
    condensed = np.full((len(stored), width + 1), _NO_LOGIT, np.float32)
    for row, classes in enumerate(stored):
        others = np.delete(logits[row], classes)
        condensed[row, : len(classes)] = logits[row, classes]
        if len(others):
            condensed[row, width] = np.logaddexp.reduce(others)
    return ((condensed.astype(np.float16).view(np.uint16) + _HALF_STEP) & _KEPT_BITS).view(np.float16)


def read_models(folder: Path, calibration: Calibration) -> dict[str, AnsweredModel]:
    """Return the models in the file ANSWERS, by name, and those of the calibration. Raises CalibrationError."""
    arrays, temperatures = _read(folder), calibration.temperatures
    models = {name: AnsweredModel(sha256, temperatures[name]) for name, sha256 in calibration.identities.items()}
    for key, values in arrays.items():
        kind, _, name = key.partition(".")
        if kind == "identity":
            models[name] = AnsweredModel(values.tobytes().hex(), float(arrays[f"temperature.{name}"][0]))
    return models


def read_condensed(folder: Path, costs_ms: Mapping[str, float]) -> RecordedAnswers:
    """Return the answers in the file ANSWERS of the models in `costs_ms`, in that order. Raises CalibrationError."""
    arrays = _read(folder)
    try:
        return RecordedAnswers(
            models=tuple(costs_ms),
            logits=np.stack([_expand(arrays[f"logits.{model}"]) for model in costs_ms]),
            classes=arrays["classes"].astype(np.int64),
            features=arrays["features"].astype(np.float32),
            groups=arrays["groups"].astype(np.int64),
            costs_ms=costs_ms,
            labels=arrays["labels"].astype(np.int64),
        )
    except (ValueError, LookupError) as error:
        raise CalibrationError(f"{folder / ANSWERS}: its arrays do not fit: {error}; {RESTORE}") from error


def _expand(stored: NDArray[np.float16]) -> NDArray[np.float16]:
    """Return a model's logits, (n, width + REST_PLACES), from what `condense` stored, (width + 1, n)."""
    rest = np.repeat(stored[-1:] - np.float16(np.log(REST_PLACES)), REST_PLACES, axis=0)
    expanded: NDArray[np.float16] = np.concatenate([stored[:-1], rest]).T
    return expanded


def _read(folder: Path) -> dict[str, NDArray[Any]]:
    try:
        return unpack(read_bounded(folder / ANSWERS, MAX_BYTES))
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{folder / ANSWERS}: cannot be read: {error}; {RESTORE}") from error
