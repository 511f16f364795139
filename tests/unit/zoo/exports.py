"""The same classifier as many exporters write it, in ONNX's text form: one that is plain, and those that differ."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

HEIGHT_PX, WIDTH_PX = 4, 5
MEAN, STD = 128 / 255, 0.25
LABELS = ("ash", "beech", "fir", "oak")
_DRAW = np.random.default_rng(7)
WEIGHTS = (0.1 * _DRAW.normal(size=(3 * HEIGHT_PX * WIDTH_PX, len(LABELS)))).astype(np.float32)
GREY = (0.1 * _DRAW.normal(size=(HEIGHT_PX * WIDTH_PX, len(LABELS)))).astype(np.float32)
TENSORS = {
    "weights": WEIGHTS,
    "half": WEIGHTS.astype(np.float16),
    "double": WEIGHTS.astype(np.float64),
    "grey": GREY,
    "one": WEIGHTS[:, :1],
    "many": np.tile(WEIGHTS, (1, 21)),
    "mean": np.float32(255 * MEAN),
    "deviation": np.float32(255 * STD),
    "step": np.float32(1 / (255 * STD)),
    "fine": np.float32(1 / 256),
    "zero": np.uint8(0),
    "centre": np.uint8(128),
    "unit": np.float32(1),
    "hundred": np.float32(100),
    "classes": np.array([1]),
    "last": np.array([2, 3]),
    "in_front": np.array([1, 2]),
    "rows": np.array([0, -1]),
    "all": np.array([-1]),
    "boxes": np.array([0, 4, 21]),
}
IMAGES = "float[n,3,4,5] images"
SPEC = {"resize": "stretch", "interpolation": "bilinear", "crop": "none", "channels": "rgb", "std": (STD,) * 3}
PLAIN = "x = Identity(images)"
LEVELS = "levels = Cast<to=1>(images) centred = Sub(levels, mean) x = Div(centred, deviation)"
TURN = "Transpose<perm=[0,3,1,2]>"
CORE = "flat = Flatten(x) logit = MatMul(flat, weights)"


@dataclass(frozen=True)
class Export:
    """A file and how it is added.

    image, front, core, end, outputs: its text. says: what is said of its changes. labels: how many it has, or gets.
    """

    end: str = "out = Identity(logit)"
    outputs: str = "float[n,4] out"
    front: str = PLAIN
    image: str = IMAGES
    core: str = CORE
    opset: int = 13
    ir: int = 7
    says: str = ""
    labels: int = len(LABELS)
    output: str | None = None
    exclusive: bool = False
    input_px: tuple[int, int] | None = None
    mean: tuple[float, float, float] = (MEAN,) * 3

    @property
    def spec(self) -> dict[str, Any]:
        """What InputSpec holds beside the size."""
        return SPEC | {"mean": self.mean}

    def model(self) -> onnx.ModelProto:
        """Return the model, its weights as initializers."""
        head = f'<ir_version: {self.ir}, opset_import: ["" : {self.opset}]> net ({self.image}) => ({self.outputs})'
        made: onnx.ModelProto = onnx.parser.parse_model(f"{head} {{ {self.front} {self.core} {self.end} }}")
        read = {name for node in made.graph.node for name in node.input}
        written = {name for node in made.graph.node for name in node.output}
        used = [name for name in TENSORS if name in read - written]
        made.graph.initializer.extend(numpy_helper.from_array(np.array(TENSORS[name]), name) for name in used)
        return made


def expected(export: Export, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return what the plain export of the same classifier answers to an image (4, 5, 3) in RGB: its logits."""
    if "grey" in export.core:
        return _grey_logits(levels, is_rounded="uint8" in export.image)
    found = _logits(levels, 1 if "one" in export.core else export.labels)
    if "LogSoftmax" in export.end:  # less the same number for all classes
        found = found - np.log(np.exp(found).sum())
    return found


def _logits(levels: NDArray[np.uint8], count: int) -> NDArray[np.float64]:
    """Return the logits of the image's colours: (count,); of one column of weights, 0 and that."""
    x = (levels.astype(float) / 255 - MEAN) / STD
    found = x.transpose(2, 0, 1).reshape(-1) @ WEIGHTS
    return np.array([0, found[0]]) if count == 1 else found[:count]


def _grey_logits(levels: NDArray[np.uint8], *, is_rounded: bool) -> NDArray[np.float64]:
    """Return the logits of the image in grey; is_rounded: of whole grey levels."""
    grey = levels @ [0.299, 0.587, 0.114]
    return (((grey.round() if is_rounded else grey) / 255 - MEAN) / STD).reshape(-1) @ GREY


def _shares(end: str, outputs: str = "float[n,4] out", **more: object) -> Export:
    return replace(Export(end, outputs, says=_FROM_SOFTMAX), **more)  # type: ignore[arg-type]


def _half(end: str, outputs: str = "float16[n,4] out", says: str = "a cast") -> Export:
    return Export(end, outputs, "", "float16[n,3,4,5] images", _HALF, says=says)


def _levels(image: str, says: str, front: str = LEVELS) -> Export:
    return Export(image=image, front=front, says=says)


def _one(end: str, outputs: str = "float[n,1] out", **more: object) -> Export:
    core = "flat = Flatten(x) logit = MatMul(flat, one)"
    return replace(Export(end, outputs, core=core, labels=2, says="the second label's logit"), **more)  # type: ignore[arg-type]


_NODE = f"w = Constant<value = float[60,4] {{{', '.join(f'{number:.9g}' for number in WEIGHTS.ravel())}}}>()"
_GREY_CORE = "flat = Flatten(x) logit = MatMul(flat, grey)"
_FROM_SOFTMAX = "comes from Softmax: its tensor .* is the output logits"
_HALF = "flat = Flatten(images) narrow = MatMul(flat, half)"
SERVED = {
    "plain": Export(),
    "called logits": Export(CORE.replace("logit ", "logits "), "float[n,4] logits", core=""),
    "of a free size": Export(image="float[n,3,h,w] images", input_px=(WIDTH_PX, HEIGHT_PX)),
    "channels last": Export(front=f"x = {TURN}(images)", image="float[n,4,5,3] images", says="3 float32: .*transpose"),
    "half precision": _half("out = Identity(narrow)", says="3 x 4 x 5 float16: .*a cast"),
    "half precision, cast inside": Export(
        front="x = Cast<to=1>(images)", image="float16[n,3,4,5] images", says="a cast"
    ),
    "double precision": Export(
        "out = MatMul(flat, double)",
        "double[n,4] out",
        "",
        "double[n,3,4,5] images",
        "flat = Flatten(images)",
        says="a cast",
    ),
    "levels": _levels("uint8[n,3,4,5] images", "3 x 4 x 5 uint8: rounding"),
    "levels, channels last, turned first": replace(
        _levels(
            "uint8[1,4,5,3] images",
            "4 x 5 x 3 uint8: rounding and a transpose and a cast",
            f"turned = {TURN}(images) {LEVELS.replace('(images)', '(turned)')}",
        ),
        outputs="float[1,4] out",
    ),
    "levels, quantised": _levels(
        "uint8[n,3,4,5] images", "rounding and a cast", "x = DequantizeLinear(images, step, centre)"
    ),
    "grey": Export(image="float[n,1,4,5] images", core=_GREY_CORE, says="1 x 4 x 5 float32: a conversion"),
    "grey, channels last": Export(image="float[n,4,5,1] images", core=_GREY_CORE, says="to grey and a transpose"),
    "grey levels": replace(_levels("uint8[n,1,4,5] images", "a conversion to grey and rounding"), core=_GREY_CORE),
    "weights among the inputs": Export(ir=3),
    "weights in nodes": Export(core=f"{_NODE} flat = Flatten(x) logit = MatMul(flat, w)"),
    "an old opset": replace(_levels("uint8[n,3,4,5] images", ""), opset=8),
    "a softmax": _shares("out = Softmax(logit)"),
    "a softmax and its input": Export(
        "logits = Identity(logit) out = Softmax(logit)", "float[n,4] logits, float[n,4] out"
    ),
    "called logits, but shares": _shares("logits = Softmax(logit)", "float[n,4] logits"),
    "a softmax over a map of one": _shares("u = Unsqueeze(logit, last) out = Softmax<axis=1>(u)", "float[n,4,1,1] out"),
    "a softmax, Identity": _shares("s = Softmax(logit) out = Identity(s)"),
    "a softmax in half, Cast": _half("s = Softmax(narrow) out = Cast<to=1>(s)", "float[n,4] out", _FROM_SOFTMAX),
    "a softmax, Reshape": _shares("s = Softmax(logit) out = Reshape(s, rows)"),
    "a softmax, Flatten": _shares("u = Unsqueeze(logit, last) s = Softmax<axis=1>(u) out = Flatten(s)"),
    "a softmax, Squeeze": _shares("u = Unsqueeze(logit, last) s = Softmax<axis=1>(u) out = Squeeze(s, last)"),
    "a softmax in 8 bits": _shares(
        "s = Softmax(logit) q = QuantizeLinear(s, fine, zero) out = DequantizeLinear(q, fine, zero)"
    ),
    "a softmax as 8 bits": _shares("s = Softmax(logit) out = QuantizeLinear(s, fine, zero)", "uint8[n,4] out"),
    "a softmax, clipped": _shares("s = Softmax(logit) out = Clip(s)"),
    "a softmax of a softmax": _shares("s = Softmax(logit) out = Softmax(s)"),
    "a softmax, dropout": _shares("s = Softmax(logit) out = Dropout(s)"),
    "a softmax that is written out": _shares("e = Exp(logit) sum = ReduceSum(e, classes) out = Div(e, sum)"),
    "a softmax that is written out in full": _shares(
        "top = ReduceMax<axes=[1]>(logit) less = Sub(logit, top) e = Exp(less) sum = ReduceSum(e, classes)"
        " out = Div(e, sum)"
    ),
    "(n, C, 1, 1)": Export("out = Unsqueeze(logit, last)", "float[n,4,1,1] out", says="with Flatten put behind"),
    "(n, 1, 1, C)": Export("out = Unsqueeze(logit, in_front)", "float[n,1,1,4] out", says="with Flatten put behind"),
    "(C)": Export(
        "out = Reshape(logit, all)", "float[4] out", image="float[1,3,4,5] images", says="with Flatten put behind"
    ),
    "a Squeeze of all": Export(
        "u = Unsqueeze(logit, last) out = Squeeze(u)", "float[] out", says="with Flatten put behind"
    ),
    "a logarithm of shares": Export("out = LogSoftmax<axis=1>(logit)"),
    "a sigmoid over one number": _one("out = Sigmoid(logit)"),
    "a sigmoid over (n)": _one("v = Squeeze(logit, classes) out = Sigmoid(v)", "float[n] out"),
    "one number": _one("out = Identity(logit)"),
    "one number (n, 1, 1, 1)": _one("out = Unsqueeze(logit, last)", "float[n,1,1,1] out"),
    "half precision, with an embedding": _half(
        "embedding = Identity(flat) out = Softmax(narrow)", "float16[n,4] out, float16[n,60] embedding"
    ),
    "with an embedding": Export(
        "embedding = Identity(flat) out = Softmax(logit)", "float[n,4] out, float[n,60] embedding"
    ),
}
