"""Export a torch classifier as an ONNX file with two outputs: the logits, and the embedding before the last layer."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from jetsel.base.errors import ManifestError
from jetsel.zoo.onnx_model import Step, put_behind

if TYPE_CHECKING:
    import torch

OPSET = 13  # ONNX Runtime 1.10, the last for Python 3.6, loads it; so does TensorRT 8.2


class Example(NamedTuple):
    """An input and the logits for it, to verify an ONNX file by: batch (2, 3, height, width), logits (2, classes)."""

    batch: NDArray[np.float32]
    logits: NDArray[np.float32]


def export(net: torch.nn.Module, path: Path, height_px: int, width_px: int) -> Example:
    """Export a network to the file `path`, for any batch size, and return random images with torch's logits for them.

    Batch normalisation is folded in. The embedding is the input of the last linear layer; a network with another end
    has none. Raises ManifestError if torch cannot export the network.
    """
    import torch

    batch = torch.randn(2, 3, height_px, width_px, generator=torch.Generator().manual_seed(0))
    net = net.eval()
    try:
        # stdout: the exporter prints a whole graph that it cannot export. dynamo=False is deprecated, but the other
        # exporter cannot go below opset 18. Tracing warns of fixed sizes, which are intended for all but the batch; a
        # trial run tests two sizes of batch.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            logits = net(batch)
            torch.onnx.export(
                net,
                (batch,),
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=["image"],
                output_names=["logits"],
                dynamic_axes={"image": {0: "n"}, "logits": {0: "n"}},
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ManifestError(f"torch cannot export it to ONNX of opset {OPSET}: {reason}; pull another model") from error
    model = onnx.load(path)
    last = next(node for node in model.graph.node if "logits" in node.output)
    if last.op_type == "Gemm":
        put_behind(model, last.input[0], "embedding", (Step("Identity"),))
        onnx.save(model, path)
    return Example(batch.numpy(), logits.numpy())
