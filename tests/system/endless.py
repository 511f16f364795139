"""A model that never comes back from some photographs: an ONNX Loop whose trip count depends on the brightest pixel."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.system.daemons import encoded
from tests.unit.daemon.families import CLASSES, INPUT, SIDE_PX, labels, put_family
from tests.unit.zoo.making import put_model

# Pixels are scaled so that white is 4.0. The pattern that models are warmed up with ends at 2.0 (engines/base.py).
SCALED = {**INPUT, "mean": [0.0, 0.0, 0.0], "std": [0.25, 0.25, 0.25], "width_px": SIDE_PX, "height_px": SIDE_PX}
BRIGHT = 3.0
FOR_EVER = 2**62

WHITE = encoded(np.full((32, 32, 3), 255, np.uint8), ".png")
DARK = encoded(np.full((32, 32, 3), 60, np.uint8), ".png")


def put_endless_family(folder: Path) -> Path:
    """Write a family of two models, `plain` and the dearer `endless`, which hangs on a white photograph."""
    weights = endless()
    put_model(
        put_family(folder, "hanging", "plain"),
        labels=labels("hanging"),
        weights=weights,
        name="endless",
        family="hanging",
        file="endless.onnx",
        sha256=hashlib.sha256(weights).hexdigest(),
        input=SCALED,
        outputs=["logits"],
        embedding_width=None,
        multiply_accumulates=2000,
    )
    return folder


def endless() -> bytes:
    """Return the ONNX file: logits are the flattened input times a matrix, plus what the loop counted, which is 0."""
    node, value = helper.make_node, helper.make_tensor_value_info
    matrix = np.random.default_rng(3).normal(size=(3 * SIDE_PX**2, CLASSES)).astype(np.float32) / 100
    constants = {
        "matrix": matrix,
        "bright": np.array(BRIGHT, np.float32),
        "for_ever": np.array(FOR_EVER),
        "zero": np.float32(0),
    }
    trip = helper.make_graph(  # the number that is carried along stays what it is
        [node("Identity", ["go_on"], ["goes_on"]), node("Abs", ["carried"], ["carries"])],
        "trip",
        [
            value("trip", TensorProto.INT64, []),
            value("go_on", TensorProto.BOOL, []),
            value("carried", TensorProto.FLOAT, []),
        ],
        [value("goes_on", TensorProto.BOOL, []), value("carries", TensorProto.FLOAT, [])],
    )
    graph = helper.make_graph(
        [
            node("Flatten", ["images"], ["flat"]),
            node("MatMul", ["flat", "matrix"], ["raw"]),
            node("ReduceMax", ["images"], ["brightest"], keepdims=0),
            node("Greater", ["brightest", "bright"], ["is_bright"]),
            node("Cast", ["is_bright"], ["one"], to=TensorProto.INT64),
            node("Mul", ["one", "for_ever"], ["trips"]),
            node("Loop", ["trips", "", "zero"], ["counted"], body=trip),
            node("Add", ["raw", "counted"], ["logits"]),
        ],
        "hanging",
        [value("images", TensorProto.FLOAT, ["n", 3, SIDE_PX, SIDE_PX])],
        [value("logits", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    found: bytes = whole.SerializeToString()
    return found
