"""A recording without images, small enough to ship, from which thresholds are fitted to another machine's latencies.

It holds for each image the class, the classes among any model's first three, and 64 places that share the rest of the
probability evenly, at each model's calibrated temperature. Confidences, and which model is right, are therefore nearly
those of the whole recording. Features are rounded to float16.
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
RESTORE = "install jetsel again"
_NO_LOGIT = -1e4  # a logit within float16 whose probability is 0


class AnsweredModel(NamedTuple):
    """One model in ANSWERS: its Manifest.identity, and the divisor of its logits."""

    identity: str
    temperature: float


@dataclass(frozen=True, eq=False)
class RecordedAnswers:
    """Answers of m models on n images, as in ANSWERS, and the models' latencies.

    logits: (m, n, c) float16 or float32, already divided by the temperatures. classes: (n,) the true class as a place
    among the c, which differ from image to image. features: (n, f) float32. groups: (n,), near-duplicates share a
    number. costs_ms: by model, in the order of `models`. labels: (n,) the true class numbers.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float16] | NDArray[np.float32]
    classes: NDArray[np.int64]
    features: NDArray[np.float32]
    groups: NDArray[np.int64]
    costs_ms: Mapping[str, float]
    labels: NDArray[np.int64]

    def cascades(self, costs_ms: Sequence[float]) -> list[tuple[tuple[int, ...], NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return each model alone and each cascade of two, by rising time: its columns, and what `judge` finds."""
        order = sorted(range(len(self.models)), key=lambda column: (costs_ms[column], self.models[column]))
        log_odds = [log_softmax(self.logits[column], 1.0) for column in order]
        outputs = Outputs(log_odds, self.classes, np.array([costs_ms[column] for column in order]))
        tried = tried_cascades(outputs).cascades
        return [(tuple(order[rung] for rung in one.rungs), *replay_cascade(one, outputs)) for one in tried]


def condense(
    logits: Mapping[str, NDArray[np.floating]],
    classes: NDArray[np.int64],
    features: NDArray[np.float32],
    groups: NDArray[np.int64] | None,
    temperatures: Mapping[str, float],
    identities: Mapping[str, str],
) -> bytes:
    """Return the content of ANSWERS, without paths, embeddings and energies.

    logits: model -> (n, classes of the family). classes: (n,) the true class numbers. features: (n, f). groups: (n,),
    see RecordedAnswers; None if each image is its own. identities: of models that the calibration beside it may lack.
    """
    scaled = {model: log_softmax(model_logits, temperatures[model]) for model, model_logits in logits.items()}
    most = TOP_CLASSES if next(iter(scaled.values())).shape[1] > FEW_CLASSES else FEW_CLASSES
    first = np.stack([np.argsort(-model_logits, axis=1)[:, :most] for model_logits in scaled.values()], axis=1)
    stored_classes = [np.unique(row) for row in first]
    width = max(map(len, stored_classes))
    no_class = width + REST_PLACES - 1  # place of a true class that no model ranks high
    arrays: dict[str, NDArray[np.generic]] = {
        "features": features.astype(np.float16),
        "groups": np.arange(len(stored_classes)) if groups is None else groups,
        "labels": classes,
        "classes": np.array(
            [
                int(np.flatnonzero(places == true)[0]) if true in places else no_class
                for places, true in zip(stored_classes, classes, strict=True)
            ]
        ),
    }
    for model, model_logits in scaled.items():
        arrays[f"logits.{model}"] = _condensed_logits(model_logits, stored_classes, width)
    for model, identity in identities.items():
        arrays[f"identity.{model}"] = np.frombuffer(bytes.fromhex(identity), np.uint8)
        arrays[f"temperature.{model}"] = np.array([temperatures[model]])
    return pack(arrays)


def _condensed_logits(
    logits: NDArray[np.float32], stored_classes: Sequence[NDArray[np.int64]], width: int
) -> NDArray[np.float16]:
    """Return one model's log odds for each image's stored classes, and for the rest: (n, width + REST)."""
    short = np.full((len(stored_classes), width + REST_PLACES), _NO_LOGIT, np.float32)
    for row, classes in enumerate(stored_classes):
        others = np.delete(logits[row], classes)
        short[row, : len(classes)] = logits[row, classes]
        if len(others):
            short[row, width:] = np.logaddexp.reduce(others) - np.log(REST_PLACES)
    return short.astype(np.float16)


def read_models(folder: Path, calibration: Calibration) -> dict[str, AnsweredModel]:
    """Return the models in ANSWERS whose identity is known, there or in the calibration. Raises CalibrationError."""
    arrays, temperatures = _read(folder), calibration.temperatures
    models = {name: AnsweredModel(one, temperatures[name]) for name, one in calibration.identities.items()}
    for key, values in arrays.items():
        kind, _, name = key.partition(".")
        if kind == "identity":
            models[name] = AnsweredModel(values.tobytes().hex(), float(arrays[f"temperature.{name}"][0]))
    return models


def read_condensed(folder: Path, costs_ms: Mapping[str, float]) -> RecordedAnswers:
    """Return the answers of the models in `costs_ms`, in that order. Raises CalibrationError."""
    arrays = _read(folder)
    try:
        return RecordedAnswers(
            models=tuple(costs_ms),
            logits=np.stack([arrays[f"logits.{model}"] for model in costs_ms]),
            classes=arrays["classes"].astype(np.int64),
            features=arrays["features"].astype(np.float32),
            groups=arrays["groups"].astype(np.int64),
            costs_ms=costs_ms,
            labels=arrays["labels"].astype(np.int64),
        )
    except (ValueError, LookupError) as error:
        raise CalibrationError(f"{folder / ANSWERS}: its arrays do not fit: {error}; {RESTORE}") from error


def _read(folder: Path) -> dict[str, NDArray[Any]]:
    try:
        return unpack(read_bounded(folder / ANSWERS, MAX_BYTES))
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{folder / ANSWERS}: cannot be read: {error}; {RESTORE}") from error
