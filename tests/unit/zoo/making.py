"""What the tests of the zoo are made of: folders of models, and ONNX files written byte by byte."""

import hashlib
import json
from pathlib import Path
from typing import Any

LABELS = "n02123045\ttabby, tabby cat\nn07920052\tespresso\n"


def varint(number: int) -> bytes:
    low = number & 0x7F
    return bytes([low]) if number < 0x80 else bytes([low | 0x80]) + varint(number >> 7)


def field(number: int, value: int | bytes) -> bytes:
    """One field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


# The numbers are those of onnx.proto: ModelProto.ir_version 1, opset_import 8, graph 7; OperatorSetIdProto.version 2;
# GraphProto.node 1, initializer 5; NodeProto.attribute 5; AttributeProto.t 5, g 6; TensorProto.dims 1, name 8,
# raw_data 9, external_data 13, data_location 14; StringStringEntryProto.key 1, value 2.
TENSOR = field(1, 2) + field(8, b"weight") + field(9, bytes(8))
LOCATION = field(13, field(1, b"location") + field(2, b"../other.data"))
EXTERNAL = field(1, 2) + field(8, b"weight") + LOCATION + field(14, 1)


def onnx_file(graph: bytes) -> bytes:
    return field(1, 7) + field(8, field(2, 13)) + field(7, graph)


WHOLE = onnx_file(field(5, TENSOR))


def described(**changes: Any) -> dict[str, Any]:
    """A manifest of the weights WHOLE, with some keys changed; a key changed to ... is left out."""
    manifest = {
        "name": "small",
        "version": "1.2.0",
        "family": "pets",
        "file": "small.onnx",
        "sha256": hashlib.sha256(WHOLE).hexdigest(),
        "labels": "labels.tsv",
        "input": {
            "width_px": 64,
            "height_px": 48,
            "resize": "shorter-side",
            "interpolation": "area",
            "crop": "center",
            "channels": "rgb",
            "mean": [0.5, 0.25, 0.125],
            "std": [0.25, 0.5, 1.0],
        },
        "embedding_width": 56,
        "multiply_accumulates": 2_000_000,
        "parameters": 60_000,
        "provenance": {"source": "made by a test"},
    }
    return {key: value for key, value in {**manifest, **changes}.items() if value is not ...}


def put_model(folder: Path, *, labels: str = LABELS, weights: bytes = WHOLE, **changes: Any) -> Path:
    """Write manifest, labels and weights into the folder; return the manifest, called as the model is."""
    manifest = described(**changes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / manifest["labels"]).write_text(labels, encoding="utf-8")
    (folder / manifest["file"]).write_bytes(weights)
    path = folder / f"{manifest['name']}.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return path
