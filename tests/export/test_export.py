"""What is exported answers as torch does, is half as large, and costs nothing more to run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import numpy_helper

from calibration.starter.export import outputs_of, store_half, to_onnx
from calibration.starter.nets import SHAPES, Net


def untrained(name: str) -> Net:
    """A network of 100 classes, its normalisations not at their defaults: folding those would prove nothing."""
    torch.manual_seed(0)
    net = Net(SHAPES[name], 100)
    with torch.no_grad():
        for key, tensor in net.state_dict().items():
            if "running" in key or tensor.ndim == 1:
                tensor.uniform_(0.3, 0.7)
    return net.eval()


@pytest.fixture(params=sorted(SHAPES))
def net(request: pytest.FixtureRequest) -> Net:
    return untrained(request.param)


def test_onnx_runtime_answers_as_torch_does(net: Net, tmp_path: Path) -> None:
    model = to_onnx(net, tmp_path / "whole.onnx")
    (tmp_path / "half.onnx").write_bytes(store_half(model).SerializeToString())
    batch = np.random.default_rng(1).standard_normal((3, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        expected = [outputs.numpy() for outputs in net(torch.from_numpy(batch))]
    for ours, theirs in zip(outputs_of(tmp_path / "whole.onnx", batch), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(outputs_of(tmp_path / "half.onnx", batch), expected, strict=True):
        # float16 keeps 11 bits: a weight is off by 2**-11 of itself at most, and the sums by less than 1 %.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.01 * float(np.abs(theirs).max()))


def test_a_weight_that_float16_cannot_hold_is_refused(tmp_path: Path) -> None:
    model = to_onnx(untrained("xs"), tmp_path / "whole.onnx")
    tensor = next(tensor for tensor in model.graph.initializer if len(tensor.dims) > 1)
    values = numpy_helper.to_array(tensor).copy()
    values.flat[0] = 70_000  # float16 ends at 65,504
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    with pytest.raises(SystemExit, match="too large for float16"), np.errstate(over="ignore"):
        store_half(model)
