"""The ONNX file that a recipe makes of its parent, and how it was made in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jetsel.errors import CalibrationError, pip_install
from jetsel.image import InputSpec
from jetsel.train.optimize import compress
from jetsel.train.optimize.graph import for_size
from jetsel.train.optimize.material import Material
from jetsel.train.optimize.recipes import Recipe, input_of
from jetsel.zoo import Model
from jetsel.zoo.onnx_model import input_of as input_name
from jetsel.zoo.onnx_model import model_in, parameters, read_model

if TYPE_CHECKING:
    from onnx import ModelProto

STEPS = "steps"
"""The folder where the steps of training are kept."""
NEEDS_TORCH = f"pruning and factorising need torch: {pip_install('export')}, or say --methods int8,smaller"


@dataclass(frozen=True)
class Content:
    """A candidate before it is tried. parameters: numbers in its weights, also where they are kept in few bits."""

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
    words = f"photographs at {spec.width_px} x {spec.height_px} px"
    return Content(file, spec, words, parameters(material.parent))


def _stored(recipe: Recipe, spec: InputSpec, material: Material, there: Mapping[Recipe, Model]) -> Content:
    """The same with other numbers, of the parent or of another candidate."""
    words = []
    graph = material.graph(spec)
    base = replace(recipe, numbers="float32")
    if base != Recipe():
        if base not in there:
            raise CalibrationError(f"{base.suffix} was not made, of which it is: see there")
        derived = there[base].manifest.derived_from
        words = [] if derived is None else [derived.recipe]
        graph = for_size(read_model(there[base].path), spec.height_px, spec.width_px)
    if recipe.numbers == "int8":
        shown = material.shown(spec, compress.MOST_SHOWN)
        made = compress.int8(graph, shown, symmetric=material.plan.symmetric)
        words.append(f"8-bit numbers, ranges of {len(shown)} photographs")
    elif recipe.numbers == "fp16":
        made, words = compress.fp16(graph), [*words, "16-bit numbers"]
    else:
        made, words = compress.clustered(graph), [*words, f"{compress.CLUSTERS} weights a tensor"]
    return Content(made.SerializeToString(), spec, "; ".join(words), parameters(graph))


def _trained(recipe: Recipe, spec: InputSpec, material: Material) -> Content:
    if material.plan.parent.manifest.head is not None:
        raise CalibrationError(
            "its last layer is a head of its own, which would not fit another backbone: optimize the backbone, and "
            "train heads on what comes of it with jetsel models train-head"
        )
    try:
        from jetsel.train.optimize.steps import trained
    except ImportError as error:
        raise CalibrationError(f"{NEEDS_TORCH} ({error})") from error
    folder = material.plan.folder / STEPS
    folder.mkdir(exist_ok=True)
    name = material.plan.parent.manifest.name
    made = trained(material.graph(spec), name, recipe, material.lesson, folder, material.tell)
    return Content(made.content, spec, made.words, parameters(model_in(made.content, name)))


def _for_input(model: Model, graph: ModelProto, spec: InputSpec) -> bytes:
    """Return the parent's file; where it names the size of its input, with another in its place."""
    from onnx import ModelProto

    changed = ModelProto()
    changed.CopyFrom(graph)
    (value,) = (one for one in changed.graph.input if one.name == input_name(changed))
    sides = value.type.tensor_type.shape.dim[2:]
    if not any(side.HasField("dim_value") for side in sides):
        return model.path.read_bytes()
    for side, size in zip(sides, (spec.height_px, spec.width_px), strict=True):
        side.dim_value = size
    del changed.graph.value_info[:]  # what it says of tensors of the old size
    content: bytes = changed.SerializeToString()
    return content
