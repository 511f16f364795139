"""Train heads (last layers) for a frozen backbone: logistic regression on its embeddings, in minutes on a CPU."""

from __future__ import annotations

import hashlib
import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import CalibrationError, pip_install
from jetsel.base.names import LeftOut, count_reasons
from jetsel.base.weights import Head
from jetsel.engines import Engine
from jetsel.features.near_duplicates import assign_folds, groups, perceptual_hash
from jetsel.train.images import SEED, Reporter, read_images
from jetsel.zoo import Model

FEWEST = 5  # images of each class, of which a fifth is held out
STEPS = 1000  # limit of the solver's iterations


@dataclass(frozen=True, eq=False)
class Embedded:
    """The backbones' embeddings of n images, and the files that could not be read."""

    embeddings: Mapping[str, NDArray[np.float32]]  # model -> (n, width)
    classes: NDArray[np.int64]  # (n,)
    groups: NDArray[np.int64]  # (n,), near-duplicates share a number
    hashes: Sequence[str]  # SHA-256 of each image, in hexadecimal
    unreadable: Sequence[LeftOut]


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """A head trained on all images, and the accuracy of one that was trained without the held-out images, on those."""

    head: Head
    accuracy: float | str  # from 0 to 1, or why it is unknown
    held_out: int  # number of held-out images, 0 if there are too few


class _Image(NamedTuple):
    """One image: its embedding (width,) by each model, its SHA-256 in hexadecimal and its perceptual hash."""

    embeddings: list[NDArray[np.float32]]
    sha256: str
    near_hash: int


def embed_images(
    photographs: Sequence[tuple[Path, int]],
    models: Sequence[Model],
    engines: Mapping[str, Engine],
    limits: image.Limits,
    decode_px: int,
    report: Reporter,
) -> Embedded:
    """Run every backbone on every image, and return the embeddings. photographs: paths and class numbers.

    engines: by the models' names. Unreadable files are skipped and listed. Raises CalibrationError if a backbone gives
    no embedding.
    """
    specs = {model.manifest.name: model.manifest.input for model in models}
    without = [model.manifest.name for model in models if model.manifest.embedding_width is None]
    if without:
        raise CalibrationError(
            f"{', '.join(without)}: gives no embedding, which a head is trained on: name another backbone"
        )

    def embed(data: bytes, decoded: image.Photograph) -> _Image:
        embeddings = [engines[name].infer(image.model_input(decoded, spec)).embedding for name, spec in specs.items()]
        vectors = [embedding[0] for embedding in embeddings if embedding is not None]
        return _Image(vectors, hashlib.sha256(data).hexdigest(), perceptual_hash(decoded.bgr))

    rows = read_images([path for path, _ in photographs], limits, decode_px, embed, report)
    readable = [row for row in rows if isinstance(row, _Image)]
    return Embedded(
        {name: np.array([row.embeddings[index] for row in readable]) for index, name in enumerate(specs)},
        np.array([n for (_, n), row in zip(photographs, rows, strict=True) if isinstance(row, _Image)], np.int64),
        groups(np.array([row.near_hash for row in readable], np.int64)),
        [row.sha256 for row in readable],
        [row for row in rows if isinstance(row, LeftOut)],
    )


def train_heads(embedded: Embedded, names: Sequence[str], report: Reporter) -> dict[str, TrainedHead]:
    """Return model -> a head for it. names: of the classes. Raises CalibrationError if a class has too few images."""
    check_enough(np.bincount(embedded.classes, minlength=len(names)).tolist(), names, embedded.unreadable)
    held = _choose_held_out(embedded, names)
    heads = {}
    for done, (model, embeddings) in enumerate(embedded.embeddings.items()):
        report("training", done, len(embedded.embeddings))
        accuracy: float | str = held if isinstance(held, str) else _test_accuracy(embeddings, embedded.classes, held)
        heads[model] = TrainedHead(
            _fit_head(embeddings, embedded.classes), accuracy, 0 if isinstance(held, str) else int(held.sum())
        )
    report("training", len(heads), len(heads))
    return heads


def check_can_train() -> None:
    """Raise CalibrationError if scikit-learn is missing."""
    if importlib.util.find_spec("sklearn") is None:
        raise CalibrationError(f"scikit-learn is needed to train: {pip_install('train')}")


def check_enough(counts: Sequence[int], names: Sequence[str], left_out: Sequence[LeftOut]) -> None:
    """Raise CalibrationError if a class has too few images. counts: images of each class. left_out: skipped files."""
    too_small = [f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count < FEWEST]
    if too_small or len(names) < 2:
        problem = f"too few of {', '.join(too_small)}" if too_small else "only one class"
        needed = f"{problem}: {FEWEST} images of each of two or more classes are needed"
        kinds = count_reasons([reason for _, reason in left_out])
        raise CalibrationError("; ".join((needed, *(f"{count} {kind} left out" for kind, count in kinds.items()))))


def _choose_held_out(embedded: Embedded, names: Sequence[str]) -> NDArray[np.bool_] | str:
    """Return which images are held out, (n,), about a fifth of each class, or why there are too few distinct images.

    The choice is repeatable, and near-duplicates of a class stay together.
    """
    held, too_small = np.zeros(len(embedded.classes), bool), []
    for number, name in enumerate(names):
        rows = np.flatnonzero(embedded.classes == number)
        distinct = len(np.unique(embedded.groups[rows]))
        if distinct < FEWEST:
            too_small.append(f"{name} ({distinct})")
        else:
            fold_of = assign_folds(embedded.groups[rows], FEWEST, SEED)
            held[rows[fold_of == np.abs(np.bincount(fold_of) - len(rows) / FEWEST).argmin()]] = True
    if too_small:
        return (
            f"{len(held)} images, {len(np.unique(embedded.groups))} of them distinct: an accuracy would say little; "
            f"add other images of {', '.join(too_small)}, from other days or places"
        )
    return held


def _test_accuracy(embeddings: NDArray[np.float32], classes: NDArray[np.int64], held: NDArray[np.bool_]) -> float:
    head = _fit_head(embeddings[~held], classes[~held])
    return float(((embeddings[held] @ head.weights + head.bias).argmax(axis=1) == classes[held]).mean())


def _fit_head(embeddings: NDArray[np.float32], classes: NDArray[np.int64]) -> Head:
    """Fit a logistic regression to standardised embeddings, and return it rescaled for the original embeddings."""
    from sklearn.linear_model import LogisticRegression

    mean, deviation = embeddings.mean(axis=0), embeddings.std(axis=0) + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about no convergence: the held-out accuracy shows whether it was enough
        fitted = LogisticRegression(C=0.01, max_iter=STEPS).fit((embeddings - mean) / deviation, classes)
    weights, bias = fitted.coef_, fitted.intercept_
    if len(weights) == 1:  # for two classes, scikit-learn has weights of the second alone
        weights, bias = np.concatenate([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2])
    scaled = (weights / deviation).T
    return Head(scaled.astype(np.float32), (bias - mean @ scaled).astype(np.float32))
