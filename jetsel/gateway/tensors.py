"""The Open Inference Protocol's tensors, JSON and binary extension: images in, labels and probabilities out.

Protocol: the KServe project's "Open Inference Protocol (V2)" and Triton's "Binary tensor data extension".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct, field
from numpy.typing import NDArray

from jetsel.base.errors import BadRequestError, JetselError
from jetsel.gateway.errors import error_body
from jetsel.gateway.sender import AnswerOptions
from jetsel.wire import Answer

MOST_IMAGES = 256  # of one request; each becomes a request to the daemon
MOST_LEVELS = 4_000_000  # pixel values in JSON: other requests wait 0.15 s while this many are read
MOST_HEAD_BYTES = 65_536  # of a request's JSON without the data
Image = bytes | memoryview | NDArray[np.uint8]  # an encoded file, or pixels (height, width, 3) BGR
Level = Annotated[int, Meta(ge=0, le=255)]
Side = Annotated[int, Meta(ge=0, le=2**31 - 1)]
T = TypeVar("T")


class _InputData(Struct, frozen=True):
    """The data of an input, as JSON that is not decoded yet; null if binary data follow."""

    data: Raw = Raw(b"null")


class _DataOnly(Struct, frozen=True):
    """The data of a request, decoded first to measure the rest. A tuple, so that a second input is rejected at once."""

    inputs: tuple[_InputData]


class Tensor(Struct, frozen=True, forbid_unknown_fields=True):
    """An input tensor of a request; data: JSON, not decoded yet."""

    name: str
    datatype: str
    shape: Annotated[list[Side], Meta(max_length=4)]
    parameters: dict[Literal["binary_data_size"], int] = {}
    data: Raw = field(default_factory=lambda: Raw(b"null"))  # a constant default cannot stand in a JSON schema


class RequestedOutput(Struct, frozen=True, forbid_unknown_fields=True):
    """An output that a request asks for by its name; binary_data: whether in binary instead of JSON."""

    name: str
    parameters: dict[Literal["binary_data"], bool] = {}


class InferenceParameters(AnswerOptions, frozen=True):
    """The request's `parameters`. binary_data_output: whether outputs are binary that do not say so themselves."""

    channels: Literal["rgb", "bgr"] | None = None  # of pixels; None means rgb
    binary_data_output: bool = False


class Inference(Struct, frozen=True, forbid_unknown_fields=True):
    """An inference request. The reply repeats `id`; KServe's client sends the model_name of the URL here too."""

    inputs: list[Tensor]
    id: str | None = None
    model_name: str | None = None
    outputs: Annotated[list[RequestedOutput], Meta(max_length=8)] = []
    parameters: InferenceParameters = field(default_factory=InferenceParameters)


def read(body: bytes, json_bytes: int | None) -> tuple[Inference, list[Image]]:
    """Return an inference request and its images. json_bytes: length of the JSON in the body, None if it is all JSON.

    Raises BadRequestError with the repair.
    """
    request, binary = parse(body, json_bytes)
    return request, list(_read_images(request.inputs[0], binary, request.parameters.channels))


def parse(body: bytes, json_bytes: int | None) -> tuple[Inference, memoryview | None]:
    """Return the request and its input's binary data, None if the data is in JSON; see `read`."""
    end = len(body) if json_bytes is None else json_bytes
    head = body[:end]
    (data_only,) = _from_json(head, _DataOnly, "the inference request", ": send one input, the images").inputs
    if len(head) - len(bytes(data_only.data)) > MOST_HEAD_BYTES:
        raise BadRequestError(f"the inference request has over {MOST_HEAD_BYTES} bytes besides its data: send less")
    request = _from_json(head, Inference, "the inference request")
    (tensor,) = request.inputs
    size = tensor.parameters.get("binary_data_size")
    if len(body) - end != (size or 0):
        raise BadRequestError(f"binary_data_size is {size or 0} bytes, but {len(body) - end} follow the JSON")
    if size is not None and bytes(tensor.data) != b"null":
        raise BadRequestError("the input has both data and binary_data_size: send one of them")
    return request, None if size is None else memoryview(body)[end:]


def _from_json(body: bytes | Raw, kind: type[T], what: str, repair: str = "") -> T:
    """Decode JSON; raises BadRequestError, whose message begins with `what` and ends with `repair`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        words = str(error).replace("Invalid enum value", "unknown")  # msgspec says this of a wrong key, too
        raise BadRequestError(f"{what}: {words}{repair}") from None


def _read_images(tensor: Tensor, binary: memoryview | None, channels: str | None) -> Iterator[Image]:
    """Yield the images of a request's input. binary: its data, None if they are in JSON. Raises BadRequestError."""
    n = prod(tensor.shape if tensor.datatype == "BYTES" else tensor.shape[:1])
    if not 1 <= n <= MOST_IMAGES:
        raise BadRequestError(f"{n} images: send 1 to {MOST_IMAGES}")
    if tensor.datatype == "BYTES":
        if channels is not None:
            raise BadRequestError("channels is of pixels (UINT8), and encoded images were sent: leave it out")
        yield from elements(tensor, binary)
    elif tensor.datatype == "UINT8":
        yield from _pixel_images(tensor, binary, channels)
    else:
        raise BadRequestError(
            f"datatype {tensor.datatype}: send BYTES, encoded images (shape [n]), or UINT8, pixels (shape "
            "[n, height, width, 3])"
        )


def elements(tensor: Tensor, binary: memoryview | None) -> list[bytes | memoryview]:
    """Return the encoded images of a BYTES tensor; binary: its data, None if in JSON. Raises BadRequestError."""
    n = prod(tensor.shape)
    encoded: list[bytes | memoryview] = []
    encoded += _decode_base64(tensor.data, n) if binary is None else _split_binary(binary, n)
    if len(encoded) != n:
        raise BadRequestError(f"shape {tensor.shape} means {n} images, but {len(encoded)} were sent")
    return encoded


def _split_binary(binary: memoryview, n: int) -> list[memoryview]:
    """Return the elements of a binary BYTES tensor, at most n + 1. Raises BadRequestError.

    The tensor holds for each element its length, four bytes little-endian, and its bytes.
    """
    byte_elements: list[memoryview] = []
    rest = binary
    while rest and len(byte_elements) <= n:
        if len(rest) < 4:
            raise BadRequestError("a BYTES element is cut off inside its length field")
        (size,) = struct.unpack_from("<I", rest)
        if 4 + size > len(rest):
            raise BadRequestError(f"a BYTES element has {size} bytes by its length, but {len(rest) - 4} follow")
        byte_elements.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return byte_elements


def _decode_base64(data: Raw, n: int) -> list[bytes]:
    """Return the images of a JSON list of n base64 strings. Raises BadRequestError."""
    text = bytes(data)
    if text.count(b",") > n:
        raise BadRequestError(f"data has more than the {n} images of its shape")
    return _from_json(text, list[bytes], "data", ": send a list of images as base64; or binary, with binary_data_size")


def _pixel_images(tensor: Tensor, binary: memoryview | None, channels: str | None) -> Iterator[Image]:
    """Yield each image of a UINT8 tensor as (height, width, 3) BGR. binary: its data, None if in JSON."""
    if len(tensor.shape) != 4 or tensor.shape[3] != 3:
        raise BadRequestError(f"shape {tensor.shape}: pixels are (n, height, width, 3)")
    flat = _json_levels(tensor.data, prod(tensor.shape)) if binary is None else np.frombuffer(binary, np.uint8)
    if flat.size != prod(tensor.shape):
        raise BadRequestError(f"shape {tensor.shape} means {prod(tensor.shape)} values, but {flat.size} were sent")
    batch = flat.reshape(tensor.shape)
    yield from batch if channels == "bgr" else (np.ascontiguousarray(rgb[..., ::-1]) for rgb in batch)


def _json_levels(data: Raw, n: int) -> NDArray[np.uint8]:
    """Return at most n pixel values from JSON lists, whose nesting is ignored. Raises BadRequestError."""
    text = bytes(data).translate(None, b"[] \t\r\n")
    if n > MOST_LEVELS or text.count(b",") > n:
        limit = f"JSON may hold at most {MOST_LEVELS} pixel values, and no more than the shape"
        raise BadRequestError(f"{limit}: send them binary, with binary_data_size, or a JPEG as BYTES")
    return np.frombuffer(bytes(_from_json(b"[%b]" % text, list[Level], "data: levels are 0 to 255")), np.uint8)


def metadata() -> dict[str, Any]:
    """Return the names, types and shapes of the inputs and outputs, which are the same for every model."""
    return {
        "inputs": [{"name": "image", "datatype": "BYTES", "shape": [-1]}],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probability", "datatype": "FP32", "shape": [-1]},
            {"name": "top_k", "datatype": "BYTES", "shape": [-1, -1]},
        ],
    }


Columns = dict[str, tuple[str, list[int], list[Any]]]
"""Outputs by name: datatype, shape, flat values. A box that failed has None; in binary, NaN or an empty string."""


def encode_reply(
    name: str, version: str | None, request: Inference, outcomes: Sequence[Answer | JetselError]
) -> tuple[bytes, int | None]:
    """Return a reply's body, and the length of its JSON, None if no binary data follow. outcomes: of images or boxes.

    Its output `top_k` holds "PROBABILITY:WNID:LABEL" by falling probability, as in Triton's classification extension.
    Raises BadRequestError for an unknown output.
    """
    n, answers = len(outcomes), [outcome if isinstance(outcome, Answer) else None for outcome in outcomes]
    k = max((len(answer.top_k) for answer in answers if answer is not None), default=0)
    top: list[Any] = []
    for answer in answers:
        labels = [] if answer is None else answer.top_k
        top += [f"{one.probability:.6f}:{one.wnid}:{one.label}" for one in labels] or [None] * k
    columns: Columns = {
        "label": ("BYTES", [n], [answer and answer.label for answer in answers]),
        "probability": ("FP32", [n], [answer and answer.probability for answer in answers]),
        "top_k": ("BYTES", [n, k], top),
    }
    return encode_outputs(name, version, request, columns, _reply_parameters(outcomes))


def encode_outputs(
    name: str, version: str | None, request: Inference, columns: Columns, parameters: dict[str, Any]
) -> tuple[bytes, int | None]:
    """Return a reply's body, and the length of its JSON, None if no binary data follow. parameters: the reply's."""
    outputs, chunks = [], []
    for requested_output in request.outputs or [RequestedOutput(name) for name in columns]:
        if requested_output.name not in columns:
            raise BadRequestError(f"there is no output {requested_output.name!r}: the outputs are {', '.join(columns)}")
        datatype, shape, values = columns[requested_output.name]
        output: dict[str, Any] = {"name": requested_output.name, "datatype": datatype, "shape": shape}
        if requested_output.parameters.get("binary_data", request.parameters.binary_data_output):
            chunk = _binary_tensor(datatype, values)
            output["parameters"] = {"binary_data_size": len(chunk)}
            chunks.append(chunk)
        else:
            output["data"] = values
        outputs.append(output)
    reply: dict[str, Any] = {"model_name": name, "outputs": outputs, "parameters": parameters}
    if version is not None:
        reply["model_version"] = version
    if request.id is not None:
        reply["id"] = request.id
    head = msgspec.json.encode(reply)
    return (head + b"".join(chunks), len(head)) if chunks else (head, None)


def _binary_tensor(datatype: str, values: list[Any]) -> bytes:
    """Return an FP32 or BYTES tensor in binary: little-endian floats, or strings after their lengths."""
    if datatype == "FP32":
        return np.array(values, "<f4").tobytes()  # None becomes NaN
    return b"".join(struct.pack("<I", len(data)) + data for data in ((value or "").encode() for value in values))


def _reply_parameters(outcomes: Sequence[Answer | JetselError]) -> dict[str, Any]:
    """Return the reply's parameters; for several outcomes lists as JSON texts, since a parameter cannot be a list."""
    rows = [_outcome_parameters(outcome) for outcome in outcomes]
    if len(rows) == 1:
        return {name: value for name, value in rows[0].items() if value is not None}
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: msgspec.json.encode([row.get(name) for row in rows]).decode() for name in names}


def _outcome_parameters(outcome: Answer | JetselError) -> dict[str, Any]:
    """Return what the outputs do not hold: how an image was answered, or its error."""
    if isinstance(outcome, JetselError):
        return error_body(outcome)
    return {
        "model": outcome.model,
        "policy": outcome.policy,
        "ran": ",".join(ran.model for ran in outcome.ran),
        "because": outcome.because,
        "in_doubt": outcome.in_doubt,
        "wrong_at_most": outcome.wrong_at_most,
        "cut_short": outcome.cut_short,
        "energy_mj": outcome.energy_mj,
        "inference_ms": sum(outcome.stages_ms.inference),
        "total_ms": outcome.stages_ms.total,
    }
