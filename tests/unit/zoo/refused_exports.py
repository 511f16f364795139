"""Exports that cannot be served as they are: what is said of each, and what makes it one that can."""

from typing import Any

from tests.unit.zoo.exports import CORE, MEAN, Export

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
