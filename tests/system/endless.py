"""A model that never comes back from some photographs: an ONNX Loop whose trip count depends on the brightest pixel."""

import hashlib
from pathlib import Path

import numpy as np
from onnx import numpy_helper, parser

from tests.system.daemons import encoded
from tests.unit.daemon.families import CLASSES, INPUT, SIDE_PX, labels, put_family
from tests.unit.zoo.making import put_model

# Pixels are scaled so that white is 4.0. The pattern that models are warmed up with ends at 2.0 (engines/base.py).
SCALED = {**INPUT, "mean": [0.0, 0.0, 0.0], "std": [0.25, 0.25, 0.25], "width_px": SIDE_PX, "height_px": SIDE_PX}
HANGING = f"""
<ir_version: 7, opset_import: ["": 13]>
hanging (float[n, 3, {SIDE_PX}, {SIDE_PX}] images) => (float[n, {CLASSES}] logits)
<float bright = {{3.0}}, int64 for_ever = {{{2**62}}}, float zero = {{0.0}}>
{{
    flat = Flatten (images)
    raw = MatMul (flat, matrix)
    brightest = ReduceMax <keepdims = 0> (images)
    is_bright = Greater (brightest, bright)
    one = Cast <to = 7> (is_bright)
    trips = Mul (one, for_ever)
    counted = Loop (trips, , zero)
    <body = trip (int64 number, bool go_on, float carried) => (bool goes_on, float carries) {{
        goes_on = Identity (go_on)
        carries = Abs (carried)
    }}>
    logits = Add (raw, counted)
}}
"""

WHITE = encoded(np.full((32, 32, 3), 255, np.uint8), ".png")
DARK = encoded(np.full((32, 32, 3), 60, np.uint8), ".png")


def put_endless_family(folder: Path, family: str = "hanging") -> Path:
    """Write a family of two models, `plain` and the dearer `endless`, which hangs on a white photograph."""
    weights = endless()
    put_model(
        put_family(folder, family, "plain"),
        labels=labels(family),
        weights=weights,
        name="endless",
        family=family,
        file="endless.onnx",
        sha256=hashlib.sha256(weights).hexdigest(),
        input=SCALED,
        embedding_width=None,
        multiply_accumulates=2000,
    )
    return folder


def endless() -> bytes:
    """Return the ONNX file: logits are the flattened input times a matrix, plus what the loop counted, which is 0."""
    model = parser.parse_model(HANGING)
    matrix = np.random.default_rng(3).normal(size=(3 * SIDE_PX**2, CLASSES)).astype(np.float32) / 100
    model.graph.initializer.append(numpy_helper.from_array(matrix, "matrix"))
    found: bytes = model.SerializeToString()
    return found
