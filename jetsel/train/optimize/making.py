"""Make a cheaper model from another one, run and compare both, and add the new one to a folder."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError, pip_install
from jetsel.base.names import RULE, LeftOut, is_plain
from jetsel.base.weights import Weights
from jetsel.engines.backends import with_head
from jetsel.engines.onnx import OnnxEngine
from jetsel.engines.trying import try_run
from jetsel.features.near_duplicates import assign_folds, groups, perceptual_hash
from jetsel.image import Limits
from jetsel.train.images import SEED, Tell, normalised, pixels, read_images
from jetsel.train.optimize import compress
from jetsel.train.optimize.compress import for_size
from jetsel.zoo import Family, Model
from jetsel.zoo.adding import derived_manifest
from jetsel.zoo.onnx_model import count_weights, model_in, read_model
from jetsel.zoo.placing import place_model, working_folder

if TYPE_CHECKING:
    from onnx import ModelProto

TRAINED = ("prune", "factorise")
SHARE = 0.5  # of the multiply-accumulates that stays after pruning or factorising
EPOCHS = 16
FEWEST_IMAGES = 100
PARTS = 3  # the images are split into this number of parts; one compares the models, the others train
HASHED_PX = 64  # shorter side of images that are compared for near-duplicates
LEAST_AGREEMENT = 0.2  # with the parent; a model below this is broken

Labelled = tuple[Path, int | None]
"""An image, and its class if it is known."""


@dataclass(frozen=True)
class Order:
    """A model to make.

    symmetric: 8-bit numbers as TensorRT demands them. threads: of one inference. most_s: limit of fine-tuning. work:
    folder for the results of finished steps.
    """

    parent: Model
    family: Family
    method: str
    images: Sequence[Labelled]
    limits: Limits
    threads: int
    symmetric: bool
    most_s: float
    work: Path

    @property
    def name(self) -> str:
        """Name of the new model."""
        return f"{self.parent.manifest.name}-{self.method}"


@dataclass(frozen=True)
class ParentComparison:
    """Comparison of the new model with its parent. images: number of images compared.

    right, parent_right: accuracy from 0 to 1, None without labels. agreement: share of equal answers, None without
    images.
    """

    images: int
    right: float | None
    parent_right: float | None
    agreement: float | None
    latency_ms: float
    parent_latency_ms: float
    file_bytes: int
    parent_file_bytes: int


def check_method(family: Family, parent: Model, method: str) -> None:
    """Raise CalibrationError if the method cannot be used for this model, or if its result exists already."""
    name = f"{parent.manifest.name}-{method}"
    if not is_plain(name):
        raise CalibrationError(f"{name} cannot be a name: {RULE}; add {parent.manifest.name} under a shorter one")
    if any(model.manifest.name == name for model in family.models):
        raise CalibrationError(
            f"family {family.name} has a model {name} already, and nothing was made: jetsel calibrate IMAGES decides "
            "whether it is used"
        )
    if method in TRAINED and any(importlib.util.find_spec(part) is None for part in ("torch", "onnx2torch")):
        raise CalibrationError(f"{method} needs torch: {pip_install('export')}")
    if method in TRAINED and parent.manifest.head is not None:
        raise CalibrationError(
            f"the last layer of {parent.manifest.name} is a separate head, which does not fit another backbone: "
            f"{method} the backbone, and train heads for the result with jetsel models train-head"
        )


def check_images(method: str, count: int) -> None:
    """Raise CalibrationError if there are too few images for the method."""
    if count < FEWEST_IMAGES and (method != "fp16" or count):
        labelled = "labelled " if method in TRAINED else ""
        raise CalibrationError(
            f"{method} needs about {FEWEST_IMAGES} {labelled}images, and there are {count}: name a folder that has "
            "more with --images"
        )


def make(order: Order, target: Path, tell: Tell) -> tuple[Model, ParentComparison]:
    """Make the model, compare it with its parent, and add it to the folder `target`.

    Call `check_method` and `check_images` first. Raises CalibrationError, ManifestError or EngineFailedError; then
    nothing is added.
    """
    learn, held = _parted(order, tell)
    check_images(order.method, len(learn) + len(held))  # these can be read
    parent, parent_manifest = order.parent, order.parent.manifest
    graph = for_size(read_model(parent.path), parent_manifest.input.height_px, parent_manifest.input.width_px)
    content, words = _content(order, graph, [path for path, _ in learn], tell)
    sha256 = hashlib.sha256(content).hexdigest()
    with working_folder(target) as work:
        file = work / "model.onnx"
        file.write_bytes(content)
        theirs = parent.weights(len(order.family.labels.wnids))
        weights = Weights(order.name, file, sha256, theirs.height_px, theirs.width_px, theirs.classes, theirs.head)
        tried, before = (try_run(one.backbone, order.threads) for one in (weights, theirs))
        compared = _compared(order, held, weights, theirs, tell)
        comparison = ParentComparison(
            *compared, tried.latency_ms, before.latency_ms, len(content), parent.path.stat().st_size
        )
        timed = replace(tried, latency_ms=parent_manifest.cost_ms * tried.latency_ms / before.latency_ms)
        count = count_weights(model_in(content, order.name)) if order.method in TRAINED else parent_manifest.parameters
        labels = order.family.labels
        manifest = derived_manifest(parent_manifest, order.name, sha256, labels, timed, count, words)
        return place_model(work, file, labels, manifest, others=parent.others()), comparison


def _parted(order: Order, tell: Tell) -> tuple[list[Labelled], list[Labelled]]:
    """Return the readable images for training and those for comparing; near-duplicates stay together."""
    paths = [path for path, _ in order.images]
    hashes = read_images(paths, order.limits, HASHED_PX, lambda _, decoded: perceptual_hash(decoded.bgr), tell)
    shown = [(one, near) for one, near in zip(order.images, hashes, strict=True) if not isinstance(near, LeftOut)]
    if not shown:
        return [], []
    folds = assign_folds(groups(np.array([near for _, near in shown], np.int64)), PARTS, SEED)
    learn = [one for (one, _), fold in zip(shown, folds, strict=True) if fold]
    return learn, [one for (one, _), fold in zip(shown, folds, strict=True) if not fold]


def _content(order: Order, graph: ModelProto, learn: Sequence[Path], tell: Tell) -> tuple[bytes, str]:
    """Return the content of the new model's file, and a description of how it was made."""
    spec, method = order.parent.manifest.input, order.method
    if method == "fp16":
        return compress.fp16(graph).SerializeToString(), "16-bit numbers"
    most = compress.MOST_SHOWN if method == "int8" else None
    levels, _ = pixels(learn[:most], spec, order.limits, order.family.decode_px, tell)
    if method == "int8":
        made = compress.int8(graph, normalised(levels, spec), symmetric=order.symmetric)
        return made.SerializeToString(), f"8-bit numbers, ranges of {len(levels)} images"
    from jetsel.train.optimize.distil import Lesson
    from jetsel.train.optimize.steps import CHANGES, Reduction, network_of, train_reduced

    name = order.parent.manifest.name
    lesson = Lesson(levels, spec, network_of(graph, name), EPOCHS, order.most_s, SEED)
    order.work.mkdir(parents=True, exist_ok=True)
    return train_reduced(graph, name, Reduction(method, SHARE, CHANGES[method]), lesson, order.work, tell)


def _compared(
    order: Order, held: Sequence[Labelled], weights: Weights, theirs: Weights, tell: Tell
) -> tuple[int, float | None, float | None, float | None]:
    """Return the number of images compared, the accuracies of new model and parent, and their agreement."""
    if not held:
        return 0, None, None, None
    spec = order.parent.manifest.input
    levels, rows = pixels([path for path, _ in held], spec, order.limits, order.family.decode_px, tell)
    shown = normalised(levels, spec)
    answers, before = (_answers(one, shown) for one in (weights, theirs))
    agreement = float((answers == before).mean())
    if agreement < LEAST_AGREEMENT:
        raise CalibrationError(
            f"{order.name} agrees on {100 * agreement:.0f} % of the images with {theirs.name}, and "
            f"{100 * LEAST_AGREEMENT:.0f} % is the minimum: use more images, or another method"
        )
    classes = [held[row][1] for row in rows]
    if any(number is None for number in classes):
        return len(rows), None, None, agreement
    truth = np.array(classes)
    return len(rows), float((answers == truth).mean()), float((before == truth).mean()), agreement


def _answers(weights: Weights, shown: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the class that a model answers for each image, (n,)."""
    engine = with_head(OnnxEngine(weights.name, weights.path, concurrency=1, threads=0), weights)
    return np.array([engine.infer(one[None]).logits[0].argmax() for one in shown], np.int64)
