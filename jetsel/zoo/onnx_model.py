"""Read an ONNX file with the onnx package: whether it holds all of its weights, and how many; give it another output.

Only the commands that add or verify a model do so: no process that serves imports the onnx package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.zoo.store import MAX_WEIGHTS_BYTES

if TYPE_CHECKING:
    from onnx import ModelProto

_ORT_FORMAT = b"ORTM"  # ONNX Runtime reads a file with this mark (its ort.fbs) by other rules, whatever its name says
_WHOLE_NUMBERS = {4, 5, 6, 7, 8, 9, 12, 13}  # of TensorProto.DataType: shapes, indices and texts, no weights


def read_model(path: Path) -> ModelProto:
    """Return the model in an ONNX file that holds all of its weights; raises ManifestError."""
    try:
        content = read_bounded(path, MAX_WEIGHTS_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; name the ONNX file") from error
    return model_in(content, str(path))


def model_in(content: bytes, name: str) -> ModelProto:
    """Return the model that a file's bytes are, called `name` in messages.

    Raises ManifestError if they are no ONNX file, or refer to another file: sha256 would say nothing of the weights
    there, and ONNX Runtime would open whatever path the file names.
    """
    import onnx
    from google.protobuf.message import DecodeError

    if content[4:8] == _ORT_FORMAT:
        raise ManifestError(f"{name}: not an ONNX file but one of ONNX Runtime's own format; export the model again")
    try:
        model: ModelProto = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise ManifestError(f"{name}: not an ONNX file: {error}; export the model again") from None
    if not model.HasField("graph"):
        raise ManifestError(f"{name}: not an ONNX file: it holds no graph; export the model again")
    for message in _messages(model):
        if isinstance(message, onnx.TensorProto) and (message.external_data or message.data_location):
            raise ManifestError(
                f"{name}: its weights are in another file, which sha256 does not cover; put them into one: "
                'onnx.save(onnx.load("model.onnx"), "whole.onnx")'
            )
    return model


def parameters(model: ModelProto) -> int:
    """Return how many numbers the weights of the main graph have; shapes and indices, which are whole, are none."""
    return sum(math.prod(tensor.dims) for tensor in model.graph.initializer if tensor.data_type not in _WHOLE_NUMBERS)


def with_output(model: ModelProto, tensor: str, name: str) -> bytes:
    """Return a file of the model whose tensor `tensor`, (n, classes) float32, is an output called `name`."""
    from onnx import ModelProto, TensorProto, helper

    changed = ModelProto()
    changed.CopyFrom(model)
    if tensor != name:
        changed.graph.node.append(helper.make_node("Identity", [tensor], [name]))
    changed.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "classes"]))
    content: bytes = changed.SerializeToString()
    return content


def input_of(model: ModelProto) -> str:
    """Return the name of the model's first input."""
    weights = {tensor.name for tensor in model.graph.initializer}  # which older files list among the inputs
    return str(next(one.name for one in model.graph.input if one.name not in weights))


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all inside it, so tensors of subgraphs, functions and attributes too (100 deep at most)."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(inner)
