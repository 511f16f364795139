"""ONNX files as the onnx package reads them: whole, or refused before ONNX Runtime sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo import STARTER, scan
from jetsel.zoo.onnx_model import model_in, parameters, read_model, with_output
from tests.unit.zoo.making import EXTERNAL, LOCATION, TENSOR, WHOLE, field, onnx_file, varint
from tests.unit.zoo.networks import FLOAT, PIXELS, WEIGHTS, network

CONSTANT = field(5, field(5, EXTERNAL))  # the value of a Constant node
OUTSIDE = {
    "an initializer": field(5, EXTERNAL),
    "a second one": field(5, TENSOR) + field(5, TENSOR + LOCATION),
    "a place without a file": field(5, TENSOR + field(14, 1)),
    "a constant": field(1, CONSTANT),
    "a branch of an If": field(1, field(5, field(6, field(5, EXTERNAL)))),
    "a list of branches": field(1, field(5, field(11, field(5, EXTERNAL)))),
    "a sparse initializer": field(15, field(1, EXTERNAL)),
}


def test_weights_elsewhere_are_refused_wherever_a_tensor_may_stand() -> None:
    model_in(WHOLE, "model.onnx")
    files = {name: onnx_file(graph) for name, graph in OUTSIDE.items()}
    files["a function"] = WHOLE + field(25, field(7, CONSTANT))
    files["a second graph"] = WHOLE + field(7, field(5, EXTERNAL))  # protobuf merges the two
    for name, content in files.items():
        with pytest.raises(ManifestError, match="another file"):
            model_in(content, name)


@pytest.mark.parametrize("high", [0, 1 << 32])
def test_what_onnx_runtime_would_open_beside_a_model_is_refused_before_it_sees_it(tmp_path: Path, high: int) -> None:
    """ONNX Runtime keeps the lower 32 bits of a key and of a place: another reader may see an unknown field."""
    location = field(1, b"location") + field(2, b"other.data")
    named = field(1, PIXELS) + field(1, 3) + field(2, FLOAT) + field(8, b"weights")
    key = varint((13 << 3 | 2) + high) + varint(len(location)) + location + varint((14 << 3) + high) + b"\1"
    model = onnx.ModelProto.FromString(network())
    model.graph.ClearField("initializer")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString() + field(7, field(5, named + key)))
    (tmp_path / "other.data").write_bytes(WEIGHTS.tobytes())
    if not high:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])  # so it does follow them
    with pytest.raises(ManifestError, match=r"another file|not an ONNX file"):
        read_model(path)


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\x08\x07", b"not a model", WHOLE[:-1], b"\xff" * 11, b"\0\0\0\0ORTM" + WHOLE):
        with pytest.raises(ManifestError, match="not an ONNX file"):
            model_in(content, "model.onnx")
    nested = field(5, EXTERNAL)
    for _ in range(2000):
        nested = field(1, field(5, field(6, nested)))
    with pytest.raises(ManifestError, match="not an ONNX file"):
        model_in(onnx_file(nested), "deeper than any reader follows")
    with pytest.raises(ManifestError, match="cannot be read"):
        read_model(tmp_path / "nothing.onnx")


def test_parameters_are_the_numbers_in_the_weights() -> None:
    assert parameters(model_in(network(), "model.onnx")) == WEIGHTS.size
    for model in scan([STARTER]).families["starter"].models:
        assert parameters(read_model(model.path)) == model.manifest.parameters


def test_a_tensor_becomes_an_output_of_another_name_or_its_own() -> None:
    content = network(("Identity", "scores", "logits"), ("Softmax", "logits", "shares"), outputs=["shares"])
    model = model_in(content, "model.onnx")
    for tensor in ("logits", "scores"):
        other = "logits" if tensor == "logits" else "found"
        session = onnxruntime.InferenceSession(with_output(model, tensor, other), providers=["CPUExecutionProvider"])
        side = session.get_inputs()[0].shape
        image = np.ones((1, *side[1:]), np.float32)
        assert session.run([other], {"images": image})[0] == pytest.approx(image.reshape(1, -1) @ WEIGHTS, abs=1e-5)
    assert [value.name for value in model.graph.output] == ["shares"], "the model itself stays"
