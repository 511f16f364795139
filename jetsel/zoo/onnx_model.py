"""Read ONNX files with their external weights, count the weights, and add nodes at both ends of a graph.

Only commands that add or verify models use this module: no process that serves imports the onnx package.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.zoo.store import MAX_WEIGHTS_BYTES

_KERAS = 'export it there: keras.saving.load_model("FILE").export("model.onnx", format="onnx")'
_TORCH = "export its network there with torch.onnx.export"
_TF2ONNX = "convert it: python3 -m tf2onnx.convert {} --output model.onnx"
_NESTED = rb"(\x08[\1-\x0f]\x12|\n)[\x80-\xff]*[\0-\x7f]\n"  # protobuf that begins with a nested message
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
"""First bytes of files in other formats -> what the file is, and the repair."""

_WHOLE_NUMBERS = {4, 5, 6, 7, 8, 9, 12, 13}  # TensorProto.DataType of shapes, indices and texts, which are no weights


class OnnxFile(NamedTuple):
    """An ONNX file's content and the model in it. taken_in: files beside it whose weights were copied into `model`."""

    path: Path
    content: bytes
    model: ModelProto
    taken_in: tuple[str, ...]


def read_file(path: Path) -> OnnxFile:
    """Read an ONNX file, and the files beside it that hold its weights; raises ManifestError if it cannot be used."""
    try:
        content = read_bounded(path, MAX_WEIGHTS_BYTES)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}; name the ONNX file") from error
    model = _parse_onnx(content, str(path))
    return OnnxFile(
        path, content, model, _include_external_weights(model, str(path), path.parent, MAX_WEIGHTS_BYTES - len(content))
    )


def read_model(path: Path) -> ModelProto:
    """Return the model in an ONNX file with all weights; raises ManifestError if it cannot be used."""
    return read_file(path).model


def model_in(content: bytes, name: str) -> ModelProto:
    """Return the model in an ONNX file's content. name: for messages.

    Raises ManifestError for other files, and if weights are in other files, which the hash of this one does not cover.
    """
    model = _parse_onnx(content, name)
    _include_external_weights(model, name, None, 0)
    return model


def _parse_onnx(content: bytes, name: str) -> ModelProto:
    """Return the model in an ONNX file's content; raises ManifestError, which says what other kind of file it is."""
    model = ModelProto()
    if content[4:8] != b"ORTM":  # ONNX Runtime's own format (ort.fbs), whatever the file's name
        with contextlib.suppress(DecodeError):
            model = ModelProto.FromString(content)
    if not model.HasField("graph"):
        kind, repair = next(
            (kind, repair) for start, kind, repair in _KINDS if re.match(start, content[:512], re.DOTALL)
        )
        raise ManifestError(f"{name}: not an ONNX file but {kind}: {repair.replace('FILE', name)}")
    return model


def _include_external_weights(model: ModelProto, name: str, folder: Path | None, most_bytes: int) -> tuple[str, ...]:
    """Copy weights that are in other files of `folder` into the model's tensors, and return these files' names.

    folder: None if no file may be read. most_bytes: limit. Raises ManifestError, also for a link, as it may lead out.
    """
    files: dict[str, bytes] = {}
    for tensor in [message for message in _nested_messages(model) if isinstance(message, TensorProto)]:
        if not tensor.external_data and not tensor.data_location:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file_name = entries.get("location", "/")
        if folder is None or Path(file_name).name != file_name or (folder / file_name).is_symlink():
            where = "read only as the model is added, from its own folder and through no link"
            raise ManifestError(f"{name}: its weights are in another file, which is {where}: export it as one file")
        try:
            if file_name not in files:
                files[file_name] = read_bounded(folder / file_name, MAX_WEIGHTS_BYTES)
            start_byte = int(entries.get("offset", 0))
            end_byte = start_byte + int(entries.get("length", len(files[file_name]) - start_byte))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "its place there is no number"
            repair = "copy that file there, or export the model as one file"
            raise ManifestError(f"{name}: its weights are in {file_name} beside it: {reason}: {repair}") from None
        most_bytes -= end_byte - start_byte
        if not 0 <= start_byte <= end_byte <= len(files[file_name]) or most_bytes < 0:
            cut = f"end before {file_name} does: copy it again"
            raise ManifestError(f"{name}: its weights {'exceed the 2 GB of an ONNX file' if most_bytes < 0 else cut}")
        tensor.raw_data = files[file_name][start_byte:end_byte]
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return tuple(files)


def count_weights(model: ModelProto) -> int:
    """Return the number of weights in the main graph, without integers, which are shapes and indices."""
    constants = [node.attribute[0].t for node in model.graph.node if node.op_type == "Constant" and node.attribute]
    weights = [*model.graph.initializer, *(tensor for tensor in constants if tensor.dims)]
    counts = [math.prod(tensor.dims) for tensor in weights if tensor.data_type not in _WHOLE_NUMBERS]
    counts += [len(one.floats) for node in model.graph.node for one in node.attribute]  # weights of ai.onnx.ml
    return sum(counts)


class Step(NamedTuple):
    """A node to insert into a graph. kind: operator. constant: float32 value of its second input, None for no input."""

    kind: str
    attributes: Mapping[str, Any] = {}
    constant: Sequence[Any] | float | None = None


def chain_nodes(steps: Sequence[Step], input_name: str, output_name: str) -> list[NodeProto]:
    """Return nodes that compute the tensor `output_name` from the tensor `input_name` by the steps in their order."""
    nodes = []
    for number, step in enumerate(steps, 1):
        inputs, output = [input_name], output_name if number == len(steps) else f"{output_name}.{number}"
        if step.constant is not None:
            inputs.append(f"{output}.constant")
            value = numpy_helper.from_array(np.array(step.constant, np.float32))
            nodes.append(helper.make_node("Constant", [], inputs[1:], value=value))
        nodes.append(helper.make_node(step.kind, inputs, [output], **step.attributes))
        input_name = output
    return nodes


def put_in_front(model: ModelProto, steps: Sequence[Step], sides: Sequence[str | int]) -> None:
    """Replace the model's input by float32 images of shape `sides`, which the steps convert to the old input."""
    value = inputs_of(model)[0]
    name = value.name
    value.CopyFrom(helper.make_tensor_value_info(f"{name}.image", TensorProto.FLOAT, sides))
    for index, node in enumerate(chain_nodes(steps, value.name, name)):
        model.graph.node.insert(index, node)


def put_behind(model: ModelProto, tensor: str, name: str, steps: Sequence[Step]) -> None:
    """Add the output `name`, (n, classes) float32: the steps applied to `tensor`. Others of this name give it up."""
    if steps or tensor != name:
        for names in (names for node in model.graph.node for names in (node.input, node.output)):
            names[:] = [f"{name}.before" if old_name == name else old_name for old_name in names]  # frees the name
        for value in [value for value in model.graph.output if value.name == name]:
            model.graph.output.remove(value)
        model.graph.ClearField("value_info")
        tensor = f"{name}.before" if tensor == name else tensor
        model.graph.node.extend(chain_nodes(steps or [Step("Identity")], tensor, name))
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "classes"]))


def keep_outputs(model: ModelProto, names: Sequence[str]) -> None:
    """Remove all outputs but `names`, and the nodes that only the removed ones need, as TensorRT may reject them."""
    outputs = [value for value in model.graph.output if value.name in names]
    model.graph.ClearField("output")
    model.graph.output.extend(outputs)
    used = {value.name for value in outputs}
    for node in reversed(list(model.graph.node)):
        if used.isdisjoint(node.output):
            model.graph.node.remove(node)
        else:  # nodes of its subgraphs read tensors of this graph too
            used.update(
                name for message in _nested_messages(node) if isinstance(message, NodeProto) for name in message.input
            )


def drop_unused_weights(model: ModelProto) -> None:
    """Remove the weights that no node reads."""
    used = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in used]:
        model.graph.initializer.remove(tensor)


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """Return the model's inputs, without its weights, which older files list among the inputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _nested_messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages inside it, such as tensors of subgraphs (protobuf nests at most 100 deep)."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _nested_messages(inner)
