"""A recording without its photographs, small enough to ship: thresholds are fitted again to another machine's times.

Of each photograph stay its class, the classes that a model had among its first three, and 64 places that share what is
left of the probability evenly, at each model's calibrated temperature: so confidences, and which model is right, are
nearly those of the whole recording. Features are halved to float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.base.arrays import MAX_BYTES, pack, unpack
from jetsel.base.errors import CalibrationError
from jetsel.base.files import read_bounded
from jetsel.premodel.cascades import Outputs, judge, log_softmax, tried_cascades

FIRST, REST = 3, 64
FEW_CLASSES = 16  # of a family of so few, all stay
_NOTHING = -1e4  # a logit that float16 holds, and whose probability is 0


@dataclass(frozen=True)
class AnsweredModel:
    """One model in ANSWERS: its Manifest.identity, and the temperature that its logits are divided by."""

    identity: str
    temperature: float


@dataclass(frozen=True, eq=False)
class JudgedCascade:
    """One cascade on n images. rungs: columns of its models, cheapest first.

    stops: (n,) the place of the rung whose answer was taken. right: (n,) whether that answer is right.
    """

    rungs: tuple[int, ...]
    stops: NDArray[np.int8]
    right: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RecordedAnswers:
    """What m models answered on n images, as ANSWERS holds it, and what each model takes.

    logits: (m, n, c) float16 or float32, divided by the calibrated temperatures already. classes: (n,) the true class,
    a place among the c, which means something for one image alone. features: (n, f) float32. groups: (n,) images that
    are nearly the same share a number. costs_ms: of each model, in the order of `models`. labels: (n,) the true class
    numbers.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float16] | NDArray[np.float32]
    classes: NDArray[np.int64]
    features: NDArray[np.float32]
    groups: NDArray[np.int64]
    costs_ms: Mapping[str, float]
    labels: NDArray[np.int64]

    def cascades(self, costs_ms: Sequence[float]) -> list[JudgedCascade]:
        """Return each model alone and each cascade of two models at these times, one a model."""
        order = sorted(range(len(self.models)), key=lambda column: (costs_ms[column], self.models[column]))
        log_odds = [log_softmax(self.logits[column], 1.0) for column in order]
        outputs = Outputs(log_odds, self.classes, np.array([costs_ms[column] for column in order]))
        cascades = []
        for fitted in tried_cascades(outputs).cascades:
            right, ran = judge(fitted, outputs)
            stops = (ran.sum(axis=1) - 1).astype(np.int8)
            cascades.append(JudgedCascade(tuple(order[rung] for rung in fitted.rungs), stops, right))
        return cascades


def condense(
    logits: Mapping[str, NDArray[np.floating]],
    classes: NDArray[np.int64],
    features: NDArray[np.float32],
    groups: NDArray[np.int64] | None,
    temperatures: Mapping[str, float],
    identities: Mapping[str, str],
) -> bytes:
    """Return the content of ANSWERS. What is not in it: paths, embeddings, energies.

    logits: of each model, (n, classes of the family). classes: (n,) the true class numbers. features: (n, f). groups:
    (n,) see RecordedAnswers; None if each image is its own. identities: of models that the calibration beside it may
    not know.
    """
    scaled = {model: log_softmax(model_logits, temperatures[model]) for model, model_logits in logits.items()}
    most = FIRST if next(iter(scaled.values())).shape[1] > FEW_CLASSES else FEW_CLASSES
    first = np.stack([np.argsort(-model_logits, axis=1)[:, :most] for model_logits in scaled.values()], axis=1)
    stored_classes = [np.unique(row) for row in first]
    width = max(map(len, stored_classes))
    no_class = width + REST - 1  # stands for a true class that no model names: one of the rest
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
        arrays[f"logits.{model}"] = _shortened(model_logits, stored_classes, width)
    for model, identity in identities.items():
        arrays[f"identity.{model}"] = np.frombuffer(bytes.fromhex(identity), np.uint8)
        arrays[f"temperature.{model}"] = np.array([temperatures[model]])
    return pack(arrays)


def _shortened(
    logits: NDArray[np.float32], stored_classes: Sequence[NDArray[np.int64]], width: int
) -> NDArray[np.float16]:
    """One model's log odds of each image's named classes, and of the rest: (n, width + REST)."""
    short = np.full((len(stored_classes), width + REST), _NOTHING, np.float32)
    for row, classes in enumerate(stored_classes):
        others = np.delete(logits[row], classes)
        short[row, : len(classes)] = logits[row, classes]
        if len(others):
            short[row, width:] = np.logaddexp.reduce(others) - np.log(REST)
    return short.astype(np.float16)


def read_models(folder: Path, calibration: Calibration) -> dict[str, AnsweredModel]:
    """Return the models that ANSWERS says enough of: those of the calibration beside it, and those with an identity.

    Raises CalibrationError.
    """
    arrays, temperatures = _read(folder), calibration.temperatures
    models = {name: AnsweredModel(one, temperatures[name]) for name, one in calibration.identities.items()}
    for key, values in arrays.items():
        kind, _, name = key.partition(".")
        if kind == "identity":
            models[name] = AnsweredModel(values.tobytes().hex(), float(arrays[f"temperature.{name}"][0]))
    return models


def read_condensed(folder: Path, costs_ms: Mapping[str, float]) -> RecordedAnswers:
    """Return the answers of the models that `costs_ms` names, in its order. Raises CalibrationError."""
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
        raise _unreadable(folder, error) from error


def _read(folder: Path) -> dict[str, NDArray[Any]]:
    try:
        return unpack(read_bounded(folder / ANSWERS, MAX_BYTES))
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> CalibrationError:
    return CalibrationError(f"{folder / ANSWERS}: cannot be read: {error}; install jetsel again")
