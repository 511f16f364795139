"""Make the candidates of one model, each whole or not at all; one that fails costs itself alone.

A candidate is a model of the same family in a folder of its own, which no daemon reads. Those that are there already
are not made again, so that a run that was killed goes on.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.engines.headed import with_head
from jetsel.engines.onnx import OnnxEngine
from jetsel.engines.trying import try_run
from jetsel.errors import CalibrationError, JetselError, ManifestError
from jetsel.train.optimize.content import Content, content_of
from jetsel.train.optimize.graph import for_size, operations
from jetsel.train.optimize.material import Material
from jetsel.train.optimize.recipes import Recipe
from jetsel.weights import Weights
from jetsel.zoo import Model, scan
from jetsel.zoo.deriving import derived
from jetsel.zoo.onnx_model import model_in
from jetsel.zoo.placing import put, working_folder

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
    return f"{parent.manifest.name}-{recipe.suffix}"[:64]


def _there(folder: Path, parent: Model, recipes: Sequence[Recipe]) -> dict[Recipe, Model]:
    """Return those that were made of these very weights."""
    found = {model.manifest.name: model for family in scan([folder]).families.values() for model in family.models}
    kept = {}
    for recipe in recipes:
        model = found.get(name_of(parent, recipe))
        derived = None if model is None else model.manifest.derived_from
        if model is not None and derived is not None and derived.identity == parent.manifest.identity:
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
                f"it gives {100 * agreement:.0f} % of the answers of {said.name}, and {100 * LEAST_AGREEMENT:.0f} % "
                "are the least: leave more of it, or let it learn from more photographs"
            )
        latency_ms = said.cost_ms * tried.latency_ms / try_run(theirs.backbone, plan.threads).latency_ms
        seen = replace(tried, latency_ms=latency_ms)
        manifest = derived(said, name, sha256, plan.family.labels.sha256, spec, seen, content.parameters, content.words)
        labels = (parent.directory / said.labels).read_bytes()
        return Model(manifest, put(work, file, labels, manifest, None, parent.others()))


def _answers(weights: Weights, shown: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the class that a model names for each photograph."""
    engine = with_head(OnnxEngine(weights.name, weights.path, concurrency=1, threads=0), weights)
    found: NDArray[np.int64] = np.array([engine.infer(one[None]).logits[0].argmax() for one in shown])
    return found


class Facts(Struct, frozen=True):
    """Of one model's ONNX file. operations: multiply-accumulates of one photograph, None where they cannot be told."""

    bytes: int
    gzipped_bytes: int
    operations: int | None
    recipe: str | None


def facts_of(model: Model) -> Facts:
    """Look into the file of a model; raises ManifestError where it cannot be read."""
    content, manifest = model.path.read_bytes(), model.manifest
    derived = manifest.derived_from
    try:
        graph = for_size(model_in(content, manifest.name), manifest.input.height_px, manifest.input.width_px)
        counted: int | None = operations(graph)
    except (ManifestError, KeyError):  # a tensor whose shape nothing tells
        counted = None
    return Facts(len(content), len(gzip.compress(content)), counted, None if derived is None else derived.recipe)
