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
from jetsel.train.images import SEED, Reporter, normalised, read_images, read_pixels
from jetsel.train.optimize import compress
from jetsel.train.optimize.compress import with_fixed_size
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
PARTS = 3  # the images are split into equal parts: one compares the models, the others train
HASHED_PX = 64  # shorter side of images that are compared for near-duplicates
LEAST_AGREEMENT = 0.2  # with the parent; a model below this is broken

LabelledPath = tuple[Path, int | None]
"""An image, and its class if it is known."""


@dataclass(frozen=True)
class OptimizeJob:
    """A cheaper model to make from one of a family."""

    parent: Model
    family: Family
    method: str  # int8, fp16, prune or factorise
    images: Sequence[LabelledPath]  # for training and comparing
    limits: Limits
    threads: int  # of one inference
    symmetric: bool  # 8-bit numbers as TensorRT demands them
    most_s: float  # limit of fine-tuning
    work: Path  # folder for finished steps, from which a later run resumes

    @property
    def name(self) -> str:
        """Name of the new model, such as `m-int8`."""
        return f"{self.parent.manifest.name}-{self.method}"


@dataclass(frozen=True)
class ParentComparison:
    """Comparison of the new model with its parent on images."""

    images: int  # their number
    right: float | None  # accuracy from 0 to 1, None without labels
    parent_right: float | None
    agreement: float | None  # share of equal answers, None without images
    latency_ms: float
    parent_latency_ms: float
    file_bytes: int
    parent_file_bytes: int


def check_method(family: Family, parent: Model, method: str) -> None:
    """Raise CalibrationError if the method cannot be used for `parent`, or if the family has its result already."""
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
    """Raise CalibrationError if the method needs more than `count` images. fp16 works without any."""
    if count < FEWEST_IMAGES and (method != "fp16" or count):
        labelled = "labelled " if method in TRAINED else ""
        raise CalibrationError(
            f"{method} needs about {FEWEST_IMAGES} {labelled}images, and there are {count}: name a folder that has "
            "more with --images"
        )


def make_model(job: OptimizeJob, target: Path, report: Reporter) -> tuple[Model, ParentComparison]:
    """Make the model, compare it with its parent, and add it to `target`, the folder of a family's models.

    Call `check_method` and `check_images` first. Raises CalibrationError, ManifestError or EngineFailedError; then
    nothing is added.
    """
    train_images, test_images = _split_images(job, report)
    check_images(job.method, len(train_images) + len(test_images))  # these can be read
    parent, parent_manifest = job.parent, job.parent.manifest
    graph = with_fixed_size(read_model(parent.path), parent_manifest.input.height_px, parent_manifest.input.width_px)
    content, description = _make_content(job, graph, [path for path, _ in train_images], report)
    sha256 = hashlib.sha256(content).hexdigest()
    with working_folder(target) as work:
        file = work / "model.onnx"
        file.write_bytes(content)
        parent_weights = parent.weights(len(job.family.labels.wnids))
        weights = replace(parent_weights, name=job.name, path=file, sha256=sha256)
        trial, parent_trial = (try_run(model.backbone, job.threads) for model in (weights, parent_weights))
        answers_compared = _compare_answers(job, test_images, weights, parent_weights, report)
        comparison = ParentComparison(
            *answers_compared, trial.latency_ms, parent_trial.latency_ms, len(content), parent.path.stat().st_size
        )
        scaled_trial = replace(trial, latency_ms=parent_manifest.cost_ms * trial.latency_ms / parent_trial.latency_ms)
        count = count_weights(model_in(content, job.name)) if job.method in TRAINED else parent_manifest.parameters
        labels = job.family.labels
        manifest = derived_manifest(parent_manifest, job.name, sha256, labels, scaled_trial, count, description)
        return place_model(work, file, labels, manifest, others=parent.others()), comparison


def _split_images(job: OptimizeJob, report: Reporter) -> tuple[list[LabelledPath], list[LabelledPath]]:
    """Return the readable images for training, and those for comparing; near-duplicates are in the same list."""
    paths = [path for path, _ in job.images]
    hashes = read_images(paths, job.limits, HASHED_PX, lambda _, decoded: perceptual_hash(decoded.bgr), report)
    readable = [(one, near) for one, near in zip(job.images, hashes, strict=True) if not isinstance(near, LeftOut)]
    if not readable:
        return [], []
    folds = assign_folds(groups(np.array([near for _, near in readable], np.int64)), PARTS, SEED)
    train_images = [one for (one, _), fold in zip(readable, folds, strict=True) if fold]
    return train_images, [one for (one, _), fold in zip(readable, folds, strict=True) if not fold]


def _make_content(job: OptimizeJob, graph: ModelProto, paths: Sequence[Path], report: Reporter) -> tuple[bytes, str]:
    """Return the new model as an ONNX file's bytes, and how it was made, in words. paths: of images to train on."""
    spec, method = job.parent.manifest.input, job.method
    if method == "fp16":
        return compress.fp16(graph).SerializeToString(), "16-bit numbers"
    most_images = compress.MOST_SHOWN if method == "int8" else None
    levels, _ = read_pixels(paths[:most_images], spec, job.limits, job.family.decode_px, report)
    if method == "int8":
        quantised = compress.int8(graph, normalised(levels, spec), symmetric=job.symmetric)
        return quantised.SerializeToString(), f"8-bit numbers, ranges of {len(levels)} images"
    from jetsel.train.optimize.distil import DistillationPlan
    from jetsel.train.optimize.steps import CHANGES, Reduction, to_torch, train_reduced

    name = job.parent.manifest.name
    lesson = DistillationPlan(levels, spec, to_torch(graph, name), EPOCHS, job.most_s, SEED)
    job.work.mkdir(parents=True, exist_ok=True)
    return train_reduced(graph, name, Reduction(method, SHARE, CHANGES[method]), lesson, job.work, report)


def _compare_answers(
    job: OptimizeJob, test_images: Sequence[LabelledPath], weights: Weights, parent_weights: Weights, report: Reporter
) -> tuple[int, float | None, float | None, float | None]:
    """Run both models; return the number of images, accuracy of new model and parent, and their agreement, 0 to 1.

    Accuracies are None without labels, the agreement without images. Raises CalibrationError if they hardly agree.
    """
    if not test_images:
        return 0, None, None, None
    spec = job.parent.manifest.input
    levels, rows = read_pixels([path for path, _ in test_images], spec, job.limits, job.family.decode_px, report)
    inputs = normalised(levels, spec)
    answers, parent_answers = (_answers(model, inputs) for model in (weights, parent_weights))
    agreement = float((answers == parent_answers).mean())
    if agreement < LEAST_AGREEMENT:
        raise CalibrationError(
            f"{job.name} agrees on {100 * agreement:.0f} % of the images with {parent_weights.name}, and "
            f"{100 * LEAST_AGREEMENT:.0f} % is the minimum: use more images, or another method"
        )
    classes = [test_images[row][1] for row in rows]
    if any(number is None for number in classes):
        return len(rows), None, None, agreement
    true_classes = np.array(classes)
    return len(rows), float((answers == true_classes).mean()), float((parent_answers == true_classes).mean()), agreement


def _answers(weights: Weights, inputs: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the class that a model answers for each of its inputs (n, 3, height, width), (n,)."""
    engine = with_head(OnnxEngine(weights.name, weights.path, concurrency=1, threads=0), weights)
    return np.array([engine.infer(image[None]).logits[0].argmax() for image in inputs], np.int64)
