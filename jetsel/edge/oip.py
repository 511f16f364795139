"""Client of the Open Inference Protocol: one image out, one vector of numbers back; every field is checked.

Protocol: KServe's "Open Inference Protocol (V2)" and Triton's "Binary tensor data extension".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.edge.messages import Remote

LENGTH_HEADER = "Inference-Header-Content-Length"
RANKED = 10  # labels to request from a ranking server; the other classes share the rest of the probability evenly
JSON_DIGITS = 7  # decimals of a tensor's numbers: float32 has no more, and each costs a byte
SLACK = 1e-3  # tolerance for a sum of probabilities above 1

UNREADABLE = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""Errors that reading an unexpected JSON document can raise, such as one with huge numbers or deep nesting."""
MOST_CHARACTERS = 500  # characters of an error, which may quote the server's reply


class EdgeAnswerError(Exception):
    """The edge server answers something other than what the configured model should return."""

    def __init__(self, message: str) -> None:
        super().__init__(message[:MOST_CHARACTERS])


def check_metadata(remote: Remote, body: bytes) -> Remote:
    """Return the model with the tensor names in its metadata, JSON in `body`. Raises EdgeAnswerError for a mismatch."""
    try:
        metadata = json.loads(body)
        inputs = {tensor["name"]: tensor for tensor in metadata["inputs"]}
        outputs = {tensor["name"]: tensor for tensor in metadata["outputs"]}
        input_spec = inputs[remote.input_name or next(iter(inputs))]
        output_spec = outputs[requested_output(remote) or next(iter(outputs))]
        datatype = "BYTES" if remote.input == "encoded" else "FP32"
        if (taken := input_spec["datatype"]) != datatype:
            raise EdgeAnswerError(f"{remote.name} takes {taken}, but the configuration sends it {datatype}")
        if remote.output != "ranked":
            numbers = output_spec["shape"][-1]
            expected = len(remote.wnids if remote.places is None else remote.places)
            if numbers not in (expected, -1):
                raise EdgeAnswerError(f"{remote.name} returns {numbers} numbers, but has {expected} labels")
        return msgspec.structs.replace(remote, input_name=input_spec["name"], output_name=output_spec["name"])
    except (*UNREADABLE, StopIteration) as error:
        names = f"input {remote.input_name or 'any'}, output {requested_output(remote) or 'any'}"
        raise EdgeAnswerError(f"{remote.name} has no {names} ({type(error).__name__}: {error})") from None


def requested_output(remote: Remote) -> str | None:
    """Return the name of the output to request, None if the model has only one."""
    return remote.output_name or ("top_k" if remote.output == "ranked" else None)


def encode_request(
    remote: Remote, payload: bytes, shape: list[int] | None, *, is_binary: bool = True
) -> tuple[list[bytes], dict[str, str]]:
    """Return a request's body in parts, and its HTTP headers. shape: of a tensor. is_binary: False sends it as JSON."""
    tensor: dict[str, Any]
    body_json: dict[str, Any]
    if not is_binary:
        name = remote.input_name or "image"
        numbers = np.frombuffer(payload, "<f4").astype(float).round(JSON_DIGITS).tolist()
        body_json = {"inputs": [{"name": name, "datatype": "FP32", "shape": shape, "data": numbers}]}
        return [msgspec.json.encode(body_json)], {"Content-Type": "application/json"}
    if remote.input == "encoded":
        binary, tensor = struct.pack("<I", len(payload)) + payload, {"datatype": "BYTES", "shape": [1]}
    else:
        binary, tensor = payload, {"datatype": "FP32", "shape": shape}
    tensor |= {"name": remote.input_name or "image", "parameters": {"binary_data_size": len(binary)}}
    body_json = {"inputs": [tensor]}
    if (output_name := requested_output(remote)) is not None:
        body_json["outputs"] = [{"name": output_name, "parameters": {"binary_data": remote.output != "ranked"}}]
    else:
        body_json["parameters"] = {"binary_data_output": True}
    if remote.output == "ranked":
        body_json["parameters"] = {"top_k": min(RANKED, len(remote.wnids))}
    head = json.dumps(body_json).encode()
    return [head, binary], {LENGTH_HEADER: str(len(head)), "Content-Type": "application/octet-stream"}


def decode_reply(remote: Remote, body: bytes, json_bytes: int | None) -> tuple[NDArray[np.float32], float | None]:
    """Return the numbers in a reply, (classes,) float32, finite, and the server's own time in ms (None: not reported).

    json_bytes: length of the JSON before the binary part of the body, None if all is JSON. A "ranked" output is
    returned as probabilities. Raises EdgeAnswerError if the reply is invalid.
    """
    try:
        answer = json.loads(body if json_bytes is None else body[:json_bytes])
        output_name = requested_output(remote)
        (output,) = (tensor for tensor in answer["outputs"] if output_name in (None, tensor["name"]))
        numbers = (
            _decode_ranking(remote, output) if remote.output == "ranked" else _decode_tensor(output, body, json_bytes)
        )
        server_ms = answer.get("parameters", {}).get("total_ms")
        is_time = isinstance(server_ms, (int, float)) and 0 <= server_ms < float("inf")
        server_ms = float(server_ms) if is_time else None
    except UNREADABLE as error:
        raise EdgeAnswerError(f"{remote.name} returned no {remote.output}: {type(error).__name__}: {error}") from None
    if remote.output != "ranked":
        expected = len(remote.wnids if remote.places is None else remote.places)
        if numbers.shape != (expected,) or not np.isfinite(numbers).all():
            raise EdgeAnswerError(
                f"{remote.name} returned numbers of shape {numbers.shape}, but {expected} finite numbers are expected"
            )
        if remote.places is not None:
            placed = np.full(len(remote.wnids), numbers.min(), np.float32)
            placed[remote.places] = numbers
            numbers = placed
        if remote.output == "probabilities" and (numbers.min() < 0 or abs(float(numbers.sum()) - 1) > SLACK):
            raise EdgeAnswerError(f"{remote.name} did not return probabilities: they add up to {numbers.sum():g}")
    return numbers, server_ms


def _decode_tensor(output: Mapping[str, Any], body: bytes, json_bytes: int | None) -> NDArray[np.float32]:
    """Return the numbers of an output tensor, from the JSON or the binary part of the body."""
    if output["datatype"] != "FP32":
        raise EdgeAnswerError(f"the output is {output['datatype']}, and not FP32")
    size = output.get("parameters", {}).get("binary_data_size")
    if size is None or json_bytes is None:
        return np.asarray(output["data"], np.float32).reshape(-1)
    return np.frombuffer(body, "<f4", size // 4, json_bytes).astype(np.float32)


def _decode_ranking(remote: Remote, output: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return probabilities (classes,) from ranked entries; classes without an entry share the rest evenly."""
    number_of = {wnid: number for number, wnid in enumerate(remote.wnids)}
    ranked: dict[int, float] = {}
    for entry in output["data"]:
        probability, wnid, _ = str(entry).split(":", 2)
        if wnid not in number_of:
            raise EdgeAnswerError(f"{remote.name} returned {wnid!r}, which is not a class of the local family")
        ranked[number_of[wnid]] = float(probability)
    total = sum(ranked.values())
    if not ranked or min(ranked.values()) < 0 or not total <= 1 + SLACK:
        raise EdgeAnswerError(
            f"{remote.name} returned {len(ranked)} labels with a total probability of {total:g}; at most 1 is expected"
        )
    others = len(remote.wnids) - len(ranked)
    numbers = np.full(len(remote.wnids), max(0.0, 1 - total) / others if others else 0.0, np.float32)
    numbers[list(ranked)] = list(ranked.values())
    return numbers
