"""Make the candidates of one model, each whole or not at all; one that fails costs itself alone.

A candidate is a model of the same family in a folder of its own, which no daemon reads. Those that are there already
are not made again, so that a run that was killed goes on.
"""

from __future__ import annotations

import gzip
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from calibration.optimizing.clustered import CLUSTERS, clustered
from calibration.optimizing.material import Material
from calibration.optimizing.recipes import Recipe, input_of
from jetsel.base.errors import CalibrationError, JetselError, ManifestError, pip_install
from jetsel.base.weights import Weights
from jetsel.engines.backends import with_head
from jetsel.engines.onnx import OnnxEngine
from jetsel.engines.trying import try_run
from jetsel.image import InputSpec
from jetsel.train.optimize import compress
from jetsel.train.optimize.compress import tensor_shapes, with_fixed_size
from jetsel.zoo import Model, scan
from jetsel.zoo.adding import derived_manifest
from jetsel.zoo.onnx_model import count_weights, inputs_of, model_in, read_model
from jetsel.zoo.placing import place_model, working_folder

if TYPE_CHECKING:
    from onnx import ModelProto

STEPS = "steps"
"""The folder where the steps of training are kept."""
NEEDS_TORCH = f"pruning and factorising need torch: {pip_install('export')}"


@dataclass(frozen=True)
class Content:
    """A candidate before it is tried. parameters: numbers in its weights, also if they are kept in few bits."""

    file: bytes
    spec: InputSpec
    words: str
    parameters: int


def content_of(recipe: Recipe, material: Material, there: Mapping[Recipe, Model]) -> Content:
    """Make one; there: the candidates that stand already. Raises JetselError with what is wrong and what to do."""
    spec = input_of(recipe, material.plan.parent.manifest.input)
    if recipe.numbers != "float32":
        return _stored(recipe, spec, material, there)
    if recipe.method is not None:
        return _trained(recipe, spec, material)
    material.graph(spec)  # whether it works at this size
    file = _for_input(material.plan.parent, material.parent, spec)
    words = f"images at {spec.width_px} x {spec.height_px} px"
    return Content(file, spec, words, count_weights(material.parent))


def _stored(recipe: Recipe, spec: InputSpec, material: Material, there: Mapping[Recipe, Model]) -> Content:
    """The same with other numbers, of the parent or of another candidate."""
    words = []
    graph = material.graph(spec)
    base = replace(recipe, numbers="float32")
    if base != Recipe():
        if base not in there:
            raise CalibrationError(f"{base.suffix}, from which it is made, was not made: see the reason there")
        derived_from = there[base].manifest.provenance.derived_from
        words = [] if derived_from is None else [derived_from.recipe]
        graph = with_fixed_size(read_model(there[base].path), spec.height_px, spec.width_px)
    if recipe.numbers == "int8":
        shown = material.shown(spec, compress.MOST_SHOWN)
        made = compress.int8(graph, shown, symmetric=material.plan.symmetric)
        words.append(f"8-bit numbers, ranges of {len(shown)} images")
    elif recipe.numbers == "fp16":
        made, words = compress.fp16(graph), [*words, "16-bit numbers"]
    else:
        made, words = clustered(graph), [*words, f"{CLUSTERS} weights a tensor"]
    return Content(made.SerializeToString(), spec, "; ".join(words), count_weights(graph))


def _trained(recipe: Recipe, spec: InputSpec, material: Material) -> Content:
    if material.plan.parent.manifest.head is not None:
        raise CalibrationError(
            "its last layer is a separate head, which does not fit another backbone: optimize the backbone, and train "
            "heads for the result with jetsel models train-head"
        )
    try:
        from calibration.optimizing.changes import CHANGES
        from jetsel.train.optimize.steps import Reduction, train_reduced
    except ImportError as error:
        raise CalibrationError(f"{NEEDS_TORCH} ({error})") from error
    folder = material.plan.folder / STEPS
    folder.mkdir(exist_ok=True)
    name = material.plan.parent.manifest.name
    method, share = recipe.method or "", recipe.share or 1.0
    reduction = Reduction(method, share, CHANGES[method])
    file, words = train_reduced(material.graph(spec), name, reduction, material.lesson, folder, material.tell)
    return Content(file, spec, words, count_weights(model_in(file, name)))


def _for_input(model: Model, graph: ModelProto, spec: InputSpec) -> bytes:
    """Return the parent's file; if it names the size of its input, with another in its place."""
    from onnx import ModelProto

    changed = ModelProto()
    changed.CopyFrom(graph)
    sides = inputs_of(changed)[0].type.tensor_type.shape.dim[2:]
    if not any(side.HasField("dim_value") for side in sides):
        return model.path.read_bytes()
    for side, size in zip(sides, (spec.height_px, spec.width_px), strict=True):
        side.dim_value = size
    del changed.graph.value_info[:]  # what it says of tensors of the old size
    content: bytes = changed.SerializeToString()
    return content


LEAST_AGREEMENT = 0.2
"""Of the parent's answers: what gives fewer of them is broken, and no cheaper rung."""
AGREED_ON = 200  # photographs


@dataclass(frozen=True)
class Made:
    """The candidates that stand in the folder, those of earlier runs too, and why the others do not."""

    models: dict[str, Model]
    failed: dict[str, str]


def make(recipes: Sequence[Recipe], material: Material) -> Made:
    """Make what is not there yet; recipes: those that others are made of come first."""
    folder = candidates_folder(material.plan.folder)
    folder.mkdir(parents=True, exist_ok=True)
    parent = material.plan.parent
    there, failed = _there(folder, parent, recipes), {}
    for number, recipe in enumerate(recipes):
        material.tell("making candidates", number, len(recipes))
        if recipe in there:
            continue
        try:
            there[recipe] = _add(recipe, content_of(recipe, material, there), material)
        except JetselError as error:
            failed[name_of(parent, recipe)] = str(error)
    material.tell("making candidates", len(recipes), len(recipes))
    return Made({model.manifest.name: model for model in there.values()}, failed)


def candidates_folder(folder: Path) -> Path:
    """Return where the candidates of a run are."""
    return folder / "candidates"


def name_of(parent: Model, recipe: Recipe) -> str:
    """Return what a candidate is called."""
    return f"{parent.manifest.name}-{recipe.suffix}"


def _there(folder: Path, parent: Model, recipes: Sequence[Recipe]) -> dict[Recipe, Model]:
    """Return those that were made of these very weights."""
    found = {model.manifest.name: model for family in scan([folder]).families.values() for model in family.models}
    kept = {}
    for recipe in recipes:
        model = found.get(name_of(parent, recipe))
        derived_from = None if model is None else model.manifest.provenance.derived_from
        if model is not None and derived_from is not None and derived_from.identity == parent.manifest.identity:
            kept[recipe] = model
    return kept


def _add(recipe: Recipe, content: Content, material: Material) -> Model:
    """Try one, and put it beside the others; raises JetselError with the reason, and then it is not there."""
    parent, plan = material.plan.parent, material.plan
    said, spec = parent.manifest, content.spec
    name, sha256 = name_of(parent, recipe), hashlib.sha256(content.file).hexdigest()
    with working_folder(candidates_folder(plan.folder)) as work:
        file = work / "model.onnx"
        file.write_bytes(content.file)
        theirs = parent.weights(len(plan.family.labels.wnids))
        weights = Weights(name, file, sha256, spec.height_px, spec.width_px, theirs.classes, theirs.head)
        tried = try_run(weights.backbone, plan.threads)
        shown = material.shown(spec, AGREED_ON), material.shown(said.input, AGREED_ON)
        agreement = float((_answers(weights, shown[0]) == _answers(theirs, shown[1])).mean())
        if agreement < LEAST_AGREEMENT:
            raise CalibrationError(
                f"it agrees on {100 * agreement:.0f} % of the images with {said.name}, and "
                f"{100 * LEAST_AGREEMENT:.0f} % is the minimum: keep more of the model, or use more images to learn "
                "from"
            )
        latency_ms = said.cost_ms * tried.latency_ms / try_run(theirs.backbone, plan.threads).latency_ms
        seen = replace(tried, latency_ms=latency_ms)
        labels = plan.family.labels
        manifest = derived_manifest(said, name, sha256, labels, seen, content.parameters, content.words).changed(
            input=spec
        )
        return place_model(work, file, labels, manifest, others=parent.others())


def _answers(weights: Weights, shown: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the class that a model names for each photograph."""
    engine = with_head(OnnxEngine(weights.name, weights.path, concurrency=1, threads=0), weights)
    found: NDArray[np.int64] = np.array([engine.infer(one[None]).logits[0].argmax() for one in shown])
    return found


class FileFacts(Struct, frozen=True):
    """Of one model's ONNX file. operations: multiply-accumulates of one photograph, None if they cannot be told."""

    bytes: int
    gzipped_bytes: int
    operations: int | None
    recipe: str | None


def operations(model: ModelProto) -> int:
    """Return the multiply-accumulates of convolutions and dense layers for one image.

    model: with a fixed size, see `with_fixed_size`, and not quantised.
    """
    shapes, total = tensor_shapes(model), 0
    for node in model.graph.node:
        if node.op_type == "Conv":
            total += math.prod(shapes[node.output[0]][1:]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("Gemm", "MatMul") and node.input[1] in shapes:
            total += math.prod(shapes[node.input[1]])
    return total


def facts_of(model: Model) -> FileFacts:
    """Look into the file of a model; raises ManifestError if it cannot be read."""
    content, manifest = model.path.read_bytes(), model.manifest
    derived_from = manifest.provenance.derived_from
    try:
        graph = with_fixed_size(model_in(content, manifest.name), manifest.input.height_px, manifest.input.width_px)
        counted: int | None = operations(graph)
    except (ManifestError, KeyError):  # a tensor whose shape nothing tells
        counted = None
    return FileFacts(
        len(content), len(gzip.compress(content)), counted, None if derived_from is None else derived_from.recipe
    )
