"""Each of the ways in which people export a classifier is served as the plain one is, or refused with what helps."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from jetsel.base.errors import JetselError
from jetsel.engines.onnx import OnnxEngine
from jetsel.engines.trying import try_run
from jetsel.image.model_input import model_input
from jetsel.image.pixels import Photograph
from jetsel.zoo.adding import AddedModel, AddTarget, ModelDescription, add_model
from jetsel.zoo.labels import labels_from_names
from jetsel.zoo.manifest import Provenance
from jetsel.zoo.onnx_model import read_file
from tests.unit.zoo.exports import CORE, HEIGHT_PX, LABELS, MEAN, SERVED, WIDTH_PX, Export, expected

IMAGES = np.random.default_rng(1).integers(0, 256, (3, HEIGHT_PX, WIDTH_PX, 3), np.uint8)


def added(path: Path, export: Export) -> AddedModel:
    """Add the file as `jetsel models add` does."""
    wanted = ModelDescription(
        name="net",
        family="trees",
        likely_family=None,
        labels=labels_from_names([*LABELS, *map(str, range(100))][: export.labels], "trees.txt"),
        labels_from=Path("trees.txt"),
        spec=export.spec,
        input_px=export.input_px,
        provenance=Provenance(source="a test"),
        output=export.output,
        exclusive=export.exclusive,
    )
    where = AddTarget.of([path.parent / "models"], path.parent / "models", None)
    return add_model(read_file(path), wanted, where, lambda weights: try_run(weights, 1), replace=False)


def check(served: AddedModel, export: Export) -> None:
    """The answers are those of the plain export."""
    manifest = served.model.manifest
    engine = OnnxEngine("net", served.model.path, concurrency=1, threads=1)
    for image in IMAGES:
        photograph = Photograph(np.ascontiguousarray(image[..., ::-1]), WIDTH_PX, HEIGHT_PX)
        output = engine.infer(model_input(photograph, manifest.input))
        (found,) = output.logits
        assert found == pytest.approx(expected(export, image), abs=1e-3)
        assert output.logits.dtype == np.float32
        assert (output.embedding is None) == ("embedding" not in export.outputs)
        assert output.embedding is None or output.embedding.dtype == np.float32


@pytest.mark.parametrize("kind", SERVED)
def test_it_is_served_with_the_logits_of_the_plain_export(tmp_path: Path, kind: str) -> None:
    export = SERVED[kind]
    path = tmp_path / "net.onnx"
    onnx.save(export.model(), path)
    served = added(path, export)
    check(served, export)
    if export.says:
        assert any(re.search(export.says, line) for line in served.changes)


_ONE_CORE = "flat = Flatten(x) logit = MatMul(flat, one)"
_TABLE_CORE = "flat = Flatten(x) numbers = MatMul(flat, many)"
_TAIL = {"end": Export.end, "outputs": Export.outputs, "core": CORE}
_LOGIT = {"output": "logit"}

REFUSED: dict[str, tuple[Export, str, dict[str, Any]]] = {
    "a sigmoid": (
        Export("out = Sigmoid(logit)"),
        "its out comes from Sigmoid: .* several may hold at once; if each image has exactly one class: .*--exclusive",
        {"exclusive": True},
    ),
    "a hard sigmoid": (Export("out = HardSigmoid(logit)"), "--output logit$", _LOGIT),
    "a sigmoid that is written out otherwise": (
        Export("e = Exp(logit) more = Add(e, unit) out = Div(e, more)"),
        "--output logit$",
        _LOGIT,
    ),
    "a softmax in percent": (Export("s = Softmax(logit) out = Mul(s, hundred)"), "--output logit$", _LOGIT),
    "the likeliest class": (
        Export("out = ArgMax<axis=1, keepdims=0>(logit)", "int64[n] out"),
        "its out is of int64, not of float32: add it with --output logit$",
        _LOGIT,
    ),
    "logits and shares": (
        Export("out = Softmax(logit)", "float[n,4] logit, float[n,4] out"),
        "has the outputs logit, out: add it with --output logit$",
        _LOGIT,
    ),
    "a detector": (
        Export("out = Reshape(numbers, boxes)", "float[n,4,21] out", core=_TABLE_CORE),
        r"its out has the shape \(\?, 4, 21\), as boxes of a detector or features have: .* a number for each class",
        _TAIL,
    ),
    "a detector's outputs": (
        Export(
            f"out = Reshape(numbers, boxes) {CORE.replace('flat', 'flat2')}",
            "float[n,4,21] out, float[n,4] logit",
            core=_TABLE_CORE,
        ),
        r"its out has the shape \(\?, 4, 21\).*name the output with a number for each class with --output$",
        _LOGIT,
    ),
    "features": (
        Export("out = Identity(numbers)", "float[n,84] out", core=_TABLE_CORE),
        "returns 84 numbers for an image, but its labels file has 4 classes: .*last layer",
        _TAIL,
    ),
    "one number for four labels": (
        Export("out = Sigmoid(logit)", "float[n,1] out", core=_ONE_CORE),
        "is one number for an image, which tells two classes apart, and there are 4 labels",
        {"labels": 2},
    ),
    "one number that is never negative": (
        Export("out = Relu(logit)", "float[n,1] out", core=_ONE_CORE, labels=2),
        "one number that is never negative",
        {"end": "out = Identity(logit)"},
    ),
    "for four images": (
        Export(image="float[4,3,4,5] images", outputs="float[4,4] out"),
        "exactly 4 images at a time: export it with a variable batch size, or with 1",
        {"image": "float[1,3,4,5] images", "outputs": "float[1,4] out"},
    ),
    "int8": (
        Export(front="x = Cast<to=1>(images)", image="int8[n,3,4,5] images"),
        "its input images is not of float32, uint8, float16, double: export it with float32",
        {"image": "float[n,3,4,5] images"},
    ),
    "any size": (
        Export(image="float[n,3,h,w] images"),
        "takes images of any size: .* --input 224x224",
        {"input_px": (5, 4)},
    ),
    "grey by the means of colours": (
        Export(
            image="float[n,1,4,5] images",
            core="flat = Flatten(x) logit = MatMul(flat, grey)",
            mean=(0.485, 0.456, 0.406),
        ),
        "takes grey images: give --mean and --std one number three times",
        {"mean": (MEAN,) * 3},
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_served_is_refused_with_a_repair_that_works(tmp_path: Path, kind: str) -> None:
    export, says, repair = REFUSED[kind]
    path = tmp_path / "net.onnx"
    onnx.save(export.model(), path)
    with pytest.raises(JetselError, match=says):
        added(path, export)
    assert not any((tmp_path / "models").glob("*.json"))
    repaired = replace(export, **repair)
    onnx.save(repaired.model(), path)
    check(added(path, repaired), repaired)
