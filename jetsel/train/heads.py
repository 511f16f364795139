"""Heads for a frozen backbone: logistic regression on its embeddings, seconds to minutes on a processor."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, CalibrationError, ImageTooLargeError, pip_install
from jetsel.base.weights import Head
from jetsel.engines import Engine
from jetsel.zoo import Model

HELD_OUT = 0.2  # of the photographs of each class
FEWEST = 5  # photographs of a class: one is held out
SEED = 2018
STEPS = 1000  # of the solver, at most
NEEDS_SKLEARN = f"scikit-learn is needed to train: {pip_install('train')}"

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Embedded:
    """What backbones saw. embeddings: model -> (n, width) float32. classes: (n,). unreadable: path, reason."""

    embeddings: Mapping[str, NDArray[np.float32]]
    classes: NDArray[np.int64]
    unreadable: Sequence[tuple[Path, str]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A head trained on all photographs, and the share of those held out that one trained on the rest got right."""

    head: Head
    accuracy: float


def see(
    photographs: Sequence[tuple[Path, int]],
    models: Sequence[Model],
    engines: Mapping[str, Engine],
    limits: image.Limits,
    decode_px: int,
    tell: Tell,
) -> Embedded:
    """Show every photograph, with its class, to every backbone; what cannot be read is listed and left out.

    Raises CalibrationError if a backbone gives no embedding.
    """
    specs = {model.manifest.name: model.manifest.input for model in models}
    without = [model.manifest.name for model in models if model.manifest.embedding_width is None]
    if without:
        raise CalibrationError(
            f"{', '.join(without)}: gives no embedding, which a head is trained on: name another backbone"
        )

    def one(path: Path) -> list[NDArray[np.float32]] | str:
        try:
            decoded = image.decode(image.read_file(path, limits), limits, decode_px)
        except OSError as fault:
            return fault.strerror or str(fault)
        except (BadImageError, ImageTooLargeError) as fault:
            return str(fault)
        found = [engines[name].infer(image.model_input(decoded, spec)).embedding for name, spec in specs.items()]
        return [embedding[0] for embedding in found if embedding is not None]

    rows: list[list[NDArray[np.float32]] | str] = []
    with ThreadPoolExecutor() as pool:
        for row in pool.map(one, [path for path, _ in photographs]):
            rows.append(row)
            tell("looking at the images", len(rows), len(photographs))
    seen = [(number, row) for (_, number), row in zip(photographs, rows, strict=True) if not isinstance(row, str)]
    stacked = [np.stack([row[column] for _, row in seen]) for column in range(len(specs))]
    classes = np.array([number for number, _ in seen], np.int64)
    unreadable = [(path, row) for (path, _), row in zip(photographs, rows, strict=True) if isinstance(row, str)]
    return Embedded(dict(zip(specs, stacked, strict=True)), classes, unreadable)


def train(seen: Embedded, names: Sequence[str], tell: Tell) -> dict[str, Trained]:
    """Train a head for each backbone. names: of the classes. Raises CalibrationError if a class has too few."""
    check_enough(np.bincount(seen.classes, minlength=len(names)).tolist(), names)
    held = _held_out(seen.classes)
    found = {}
    for done, (model, embeddings) in enumerate(seen.embeddings.items()):
        tell("training", done, len(seen.embeddings))
        tried = _fitted(embeddings[~held], seen.classes[~held])
        right = (embeddings[held] @ tried.weights + tried.bias).argmax(axis=1) == seen.classes[held]
        found[model] = Trained(_fitted(embeddings, seen.classes), float(right.mean()))
    tell("training", len(found), len(found))
    return found


def check_can_train() -> None:
    """Raise CalibrationError if scikit-learn is missing."""
    if importlib.util.find_spec("sklearn") is None:
        raise CalibrationError(NEEDS_SKLEARN)


def check_enough(counts: Sequence[int], names: Sequence[str]) -> None:
    """Raise CalibrationError if a class has too few photographs. counts: of each class."""
    few = [f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count < FEWEST]
    if few or len(names) < 2:
        what = f"too few of {', '.join(few)}" if few else "only one class"
        raise CalibrationError(f"{what}: {FEWEST} images of each of two or more classes are needed")


def _held_out(classes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Draw a share of each class, the same each time."""
    draw, held = np.random.default_rng(SEED), np.zeros(len(classes), bool)
    for number in np.unique(classes):
        rows = draw.permutation(np.flatnonzero(classes == number))
        held[rows[: max(1, round(HELD_OUT * len(rows)))]] = True
    return held


def _fitted(embeddings: NDArray[np.float32], classes: NDArray[np.int64]) -> Head:
    """Fit a logistic regression on standardised embeddings, and return it as one for the embeddings themselves."""
    from sklearn.linear_model import LogisticRegression

    mean, deviation = embeddings.mean(axis=0), embeddings.std(axis=0) + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it could go on: the accuracy held out tells whether it was enough
        fitted = LogisticRegression(C=0.01, max_iter=STEPS).fit((embeddings - mean) / deviation, classes)
    weights, bias = fitted.coef_, fitted.intercept_
    if len(weights) == 1:  # of two classes it keeps the second's alone
        weights, bias = np.concatenate([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2])
    scaled = (weights / deviation).T
    return Head(scaled.astype(np.float32), (bias - mean @ scaled).astype(np.float32))
