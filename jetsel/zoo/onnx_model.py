"""Read an ONNX file with the onnx package: whether it holds all of its weights, and how many; give it another output.

Only the commands that add or verify a model do so: no process that serves imports the onnx package.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.zoo.store import MAX_WEIGHTS_BYTES

if TYPE_CHECKING:
    from onnx import ModelProto

_ORT_FORMAT = b"ORTM"  # ONNX Runtime reads a file with this mark (its ort.fbs) by other rules, whatever its name says
_KERAS = 'export it there: keras.saving.load_model("FILE").export("model.onnx", format="onnx")'
_TORCH = "export its network there with torch.onnx.export"
_TF2ONNX = "convert it: python3 -m tf2onnx.convert {} --output model.onnx"
_NESTED = rb"(\x08[\1-\x0f]\x12|\n)[\x80-\xff]*[\0-\x7f]\n"  # protobuf that begins with a message in a message
_KINDS = (
    (rb".{4}ORTM", "one of ONNX Runtime's own format", "export the model again"),
    (rb".{4}TFL3", "a TensorFlow Lite model", _TF2ONNX.format("--tflite FILE")),
    (rb"\x89HDF", "a Keras model, or other data in HDF5", _KERAS),
    (rb"PK.{28}(config|metadata)\.json", "a Keras model", _KERAS),
    (rb"PK.{28,300}\.pkl|\x80[\x02-\x05]", "a checkpoint of PyTorch, or another pickle", _TORCH),
    (rb".{5}\0\0\0\{", "weights alone, in the format of safetensors", _TORCH),
    (rb"PK|\x1f\x8b|\xfd7zXZ|BZh|7z\xbc|\x28\xb5\x2f\xfd", "an archive", "unpack it, and name the ONNX file in it"),
    (rb"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    (rb"(\xef\xbb\xbf)?\s*<", "a web page, or another text in XML", "download the ONNX file itself"),
    (_NESTED, "a model of Core ML or TensorFlow", f"for a SavedModel, {_TF2ONNX.format('--saved-model FOLDER')}"),
    (rb"\x08|\Z", "a damaged or incomplete one", "copy or download it again"),
    (rb"", "one of an unknown kind", "export the model as ONNX"),
)
"""What a file that is no ONNX file may be, by its first bytes, and the repair."""

_WHOLE_NUMBERS = {4, 5, 6, 7, 8, 9, 12, 13}  # of TensorProto.DataType: shapes, indices and texts, no weights


def read_model(path: Path) -> ModelProto:
    """Return the model in an ONNX file that holds all of its weights; raises ManifestError."""
    try:
        content = read_bounded(path, MAX_WEIGHTS_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; name the ONNX file") from error
    return model_in(content, str(path), path.parent)


def model_in(content: bytes, name: str, folder: Path | None = None) -> ModelProto:
    """Return the model that a file's bytes are, called `name` in messages; folder: the file's, if it is known.

    Raises ManifestError if they are no ONNX file, or refer to another file: sha256 would say nothing of the weights
    there, and ONNX Runtime would open whatever path the file names.
    """
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    if content[4:8] != _ORT_FORMAT:
        with contextlib.suppress(DecodeError):
            model = onnx.ModelProto.FromString(content)
    if not model.HasField("graph"):
        kind, repair = next(
            (kind, repair) for start, kind, repair in _KINDS if re.match(start, content[:512], re.DOTALL)
        )
        raise ManifestError(f"{name}: not an ONNX file but {kind}: {repair.replace('FILE', name)}")
    for message in _messages(model):
        if isinstance(message, onnx.TensorProto) and (message.external_data or message.data_location):
            raise ManifestError(f"{name}: its weights are in another file{_where(message, name, folder)}")
    return model


def _where(tensor: Any, name: str, folder: Path | None) -> str:
    """Return where the numbers of a tensor are that are in another file, and the repair."""
    place = Path(next((entry.value for entry in tensor.external_data if entry.key == "location"), ".."))
    if ".." in place.parts or place.is_absolute():
        return " outside of its folder: export it as one file"
    if folder is None or not (folder / place).is_file():
        return f", {place}, which is not beside it: copy it there, or export the model as one file"
    command = f"import onnx; onnx.save(onnx.load({name!r}), 'whole.onnx')"
    return f', {place}, which its hash does not cover: run python3 -c "{command}", and add whole.onnx'


def parameters(model: ModelProto) -> int:
    """Return how many numbers the weights of the main graph have; shapes and indices, which are whole, are none."""
    constants = [node.attribute[0].t for node in model.graph.node if node.op_type == "Constant" and node.attribute]
    weights = [*model.graph.initializer, *(tensor for tensor in constants if tensor.dims)]
    return sum(math.prod(tensor.dims) for tensor in weights if tensor.data_type not in _WHOLE_NUMBERS)


def with_output(model: ModelProto, tensor: str, name: str, put_behind: Sequence[str] = ()) -> bytes:
    """Return a file of the model with another output, called `name`: `tensor`, (n, classes) float32.

    put_behind: the operators that make it so, Cast and Flatten, see GraphEnds.put_behind.
    """
    from onnx import ModelProto, TensorProto, helper

    changed = ModelProto()
    changed.CopyFrom(model)
    steps = put_behind or (("Identity",) if tensor != name else ())
    if steps:  # another tensor may have the name
        for names in (names for node in changed.graph.node for names in (node.input, node.output)):
            names[:] = [f"{name}.before" if one == name else one for one in names]
        for value in [value for value in changed.graph.output if value.name == name]:
            changed.graph.output.remove(value)
        changed.graph.ClearField("value_info")
        tensor = f"{name}.before" if tensor == name else tensor
    for number, kind in enumerate(steps, 1):
        made = name if number == len(steps) else f"{name}.{kind}"
        to = TensorProto.FLOAT if kind == "Cast" else None  # None is left out
        changed.graph.node.append(helper.make_node(kind, [tensor], [made], to=to))
        tensor = made
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
