"""A published model comes back from its file as the network that was exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from calibration.starter.export import store_half, to_onnx
from calibration.starter.nets import SHAPES
from calibration.starter.published import net_of
from tests.export.nets import untrained


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_it_answers_as_the_network_that_was_exported(name: str, tmp_path: Path) -> None:
    net, path = untrained(name), tmp_path / f"{name}.onnx"
    path.write_bytes(store_half(to_onnx(net, tmp_path / "whole.onnx")).SerializeToString())
    batch = torch.from_numpy(np.random.default_rng(2).standard_normal((3, 3, 64, 64)).astype(np.float32))
    with torch.no_grad():
        for ours, theirs in zip(net_of(name, path)(batch), net(batch), strict=True):
            # float16 keeps 11 bits: a weight is off by 2**-11 of itself at most, and the sums by less than 1 %.
            assert float((ours - theirs).abs().max()) <= 0.01 * float(theirs.abs().max())


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.onnx"
    path.write_bytes(store_half(to_onnx(untrained("s"), tmp_path / "whole.onnx")).SerializeToString())
    for name in ("xs", "m", "l"):
        with pytest.raises(SystemExit, match=f"not of architecture {name}"):
            net_of(name, path)


def test_a_missing_file_names_the_repair(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"run python -m calibration\.starter\.train xs, then export it"):
        net_of("xs", tmp_path / "xs.onnx")
