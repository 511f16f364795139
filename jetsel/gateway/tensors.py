"""The Open Inference Protocol's tensors, JSON and binary extension: photographs in, labels and probabilities out.

Protocol: the KServe project's "Open Inference Protocol (V2)" and Triton's "Binary tensor data extension".
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from jetsel.errors import BadRequestError
from jetsel.wire import Answer

MOST_IMAGES = 256  # of one request; each is one on the daemon's socket
Image = bytes | memoryview | NDArray[np.uint8]


class Tensor(Struct, frozen=True):
    """An input."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, Any] = {}
    data: Any = None


class Wanted(Struct, frozen=True):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """What `parameters` of a request may say; binary_data_output: how the outputs come where they do not say."""

    policy: str | None = None
    deadline_ms: float | None = None
    top_k: int = 5
    criterion: Literal["top1", "top5"] = "top1"
    on_doubt: Literal["use", "refuse"] | None = None
    on_device: bool = False
    least_accuracy: float | None = None
    most_energy_mj: float | None = None
    channels: Literal["rgb", "bgr"] = "rgb"
    binary_data_output: bool = False


class Inference(Struct, frozen=True):
    """A request. `id` comes back with the reply."""

    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Wanted] = []
    parameters: Options = field(default_factory=Options)


def read(body: bytes, json_bytes: int | None) -> tuple[Inference, list[Image]]:
    """Return the request and its photographs. json_bytes: Inference-Header-Content-Length, None for JSON alone.

    Raises BadRequestError that says what is meant.
    """
    request, binary = parse(body, json_bytes)
    images = list(_images(request.inputs[0], binary, request.parameters.channels))
    if not 1 <= len(images) <= MOST_IMAGES:
        raise BadRequestError(f"{len(images)} photographs: send 1 to {MOST_IMAGES}")
    return request, images


def parse(body: bytes, json_bytes: int | None) -> tuple[Inference, memoryview | None]:
    """Return a request of one input and that tensor's binary data, None where it is in JSON; raises as `read` does."""
    end = len(body) if json_bytes is None else json_bytes
    try:
        request = msgspec.json.decode(body[:end], type=Inference)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"the inference request: {error}") from None
    if len(request.inputs) != 1:
        raise BadRequestError(f"{len(request.inputs)} inputs: send one, the photographs")
    (tensor,) = request.inputs
    size = tensor.parameters.get("binary_data_size")
    binary = None
    if size is not None:
        binary = memoryview(body)[end:]
        if len(binary) != size:
            raise BadRequestError(f"binary_data_size says {size} bytes, and {len(binary)} follow the JSON")
    return request, binary


def _images(tensor: Tensor, binary: memoryview | None, channels: str) -> Iterator[Image]:
    if any(side < 0 for side in tensor.shape):
        raise BadRequestError(f"shape {tensor.shape}: no side is below 0")
    if tensor.datatype == "BYTES":
        yield from elements(tensor, binary)
    elif tensor.datatype == "UINT8":
        yield from _pixels(tensor, binary, channels)
    else:
        raise BadRequestError(
            f"datatype {tensor.datatype}: send BYTES, encoded photographs (shape [n]), or UINT8, pixels (n, height, "
            "width, 3)"
        )


def elements(tensor: Tensor, binary: memoryview | None) -> list[bytes | memoryview]:
    """Return the photographs of a BYTES tensor; raises BadRequestError."""
    encoded = _elements(binary) if binary is not None else _decoded(tensor.data)
    if len(encoded) != prod(tensor.shape):
        raise BadRequestError(f"shape {tensor.shape} is {prod(tensor.shape)} photographs, and {len(encoded)} came")
    return encoded


def _elements(binary: memoryview) -> list[bytes | memoryview]:
    """Each element of a binary BYTES tensor: its length, four bytes little-endian, and as many bytes."""
    found: list[bytes | memoryview] = []
    at = 0
    while at < len(binary):
        if at + 4 > len(binary):
            raise BadRequestError("a BYTES element ends within its length")
        (size,) = struct.unpack_from("<I", binary, at)
        if at + 4 + size > len(binary):
            raise BadRequestError(f"a BYTES element says {size} bytes, and {len(binary) - at - 4} follow")
        found.append(binary[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _decoded(data: Any) -> list[bytes | memoryview]:
    """Photographs in JSON, which holds no bytes: base64."""
    if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
        raise BadRequestError("data: a list of photographs as base64; or binary, with binary_data_size")
    try:
        return [base64.b64decode(one, validate=True) for one in data]
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"data: no base64: {error}") from None


def _pixels(tensor: Tensor, binary: memoryview | None, channels: str) -> Iterator[Image]:
    if len(tensor.shape) != 4 or tensor.shape[3] != 3:
        raise BadRequestError(f"shape {tensor.shape}: pixels are (n, height, width, 3)")
    try:
        flat = np.frombuffer(binary, np.uint8) if binary is not None else _levels(tensor.data)
        batch = flat.reshape(tensor.shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadRequestError(f"data does not fill shape {tensor.shape} with levels of 0 to 255: {error}") from None
    yield from batch if channels == "bgr" else (np.ascontiguousarray(one[..., ::-1]) for one in batch)


def _levels(data: Any) -> NDArray[np.uint8]:
    """Levels in JSON, flat or nested."""
    values = np.array(data)
    if values.dtype.kind not in "iu" or (values.size and (values.min() < 0 or values.max() > 255)):
        raise ValueError("they are whole numbers")
    return values.astype(np.uint8)


def metadata() -> dict[str, Any]:
    """Inputs and outputs, as every model here has them."""
    return {
        "inputs": [{"name": "image", "datatype": "BYTES", "shape": [-1]}],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probability", "datatype": "FP32", "shape": [-1]},
            {"name": "top_k", "datatype": "BYTES", "shape": [-1, -1]},
        ],
    }


Columns = dict[str, tuple[str, list[int], list[Any]]]
"""Outputs by name: datatype, shape and values, flat."""


def write(name: str, version: str | None, request: Inference, answers: Sequence[Answer]) -> tuple[bytes, int | None]:
    """Return the reply's body, and how many bytes of it are JSON where binary tensors follow, else None.

    top_k: "PROBABILITY:WNID:LABEL" by falling probability, as Triton's classification extension writes them. Raises
    BadRequestError for an output that there is not.
    """
    n = len(answers)
    top = [[f"{one.probability:.6f}:{one.wnid}:{one.label}" for one in answer.top_k] for answer in answers]
    columns: Columns = {
        "label": ("BYTES", [n], [answer.label for answer in answers]),
        "probability": ("FP32", [n], [answer.probability for answer in answers]),
        "top_k": ("BYTES", [n, len(top[0])], [entry for row in top for entry in row]),
    }
    return pack(name, version, request, columns, _told(answers))


def pack(
    name: str, version: str | None, request: Inference, columns: Columns, told: dict[str, Any]
) -> tuple[bytes, int | None]:
    """Return the body and the bytes of its JSON, as `write` does, of any columns. told: the reply's parameters."""
    outputs, chunks = [], []
    for wanted in request.outputs or [Wanted(name) for name in columns]:
        if wanted.name not in columns:
            raise BadRequestError(f"output {wanted.name!r}: there are {', '.join(columns)}")
        datatype, shape, values = columns[wanted.name]
        output: dict[str, Any] = {"name": wanted.name, "datatype": datatype, "shape": shape}
        if wanted.parameters.get("binary_data", request.parameters.binary_data_output):
            chunk = _packed(datatype, values)
            output["parameters"] = {"binary_data_size": len(chunk)}
            chunks.append(chunk)
        else:
            output["data"] = values
        outputs.append(output)
    reply: dict[str, Any] = {"model_name": name, "outputs": outputs, "parameters": told}
    if version is not None:
        reply["model_version"] = version
    if request.id is not None:
        reply["id"] = request.id
    head = msgspec.json.encode(reply)
    return (head + b"".join(chunks), len(head)) if chunks else (head, None)


def _packed(datatype: str, values: list[Any]) -> bytes:
    if datatype == "FP32":
        return np.array(values, "<f4").tobytes()
    return b"".join(struct.pack("<I", len(data)) + data for data in (value.encode() for value in values))


def _told(answers: Sequence[Answer]) -> dict[str, Any]:
    """What is known beside the outputs; of several photographs, as lists in JSON, since a parameter is no list."""
    rows = [
        {
            "model": answer.model,
            "policy": answer.policy,
            "ran": ",".join(ran.model for ran in answer.ran),
            "because": answer.because,
            "in_doubt": answer.in_doubt,
            "cut_short": answer.cut_short,
            "energy_mj": answer.energy_mj,
            "inference_ms": sum(answer.stages_ms.inference),
            "total_ms": answer.stages_ms.total,
        }
        for answer in answers
    ]
    if len(rows) == 1:
        return {name: value for name, value in rows[0].items() if value is not None}
    return {name: msgspec.json.encode([row[name] for row in rows]).decode() for name in rows[0]}
