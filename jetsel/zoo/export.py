"""Export a torch classifier as an ONNX file with two outputs: the logits, and the embedding before the last layer."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import ManifestError

if TYPE_CHECKING:
    import torch

OPSET = 13  # ONNX Runtime 1.10, the last for Python 3.6, loads it; so does TensorRT 8.2
_BATCH = 2  # of the example; reveals an embedding whose first dimension is not the batch


class Example(NamedTuple):
    """An input and torch's answer. batch: (2, 3, height, width) float32. logits: (2, classes) float32."""

    batch: NDArray[np.float32]
    logits: NDArray[np.float32]


def export(net: torch.nn.Module, path: Path, height_px: int, width_px: int) -> Example:
    """Export the network for any batch size, batch normalisation folded in, and return its answer to random numbers.

    The embedding is the input of the last linear layer; a network with another end has none. Raises ManifestError if
    torch cannot export the network.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    batch = torch.randn(_BATCH, 3, height_px, width_px, generator=generator)
    net = net.eval()
    exported: dict[str, torch.Tensor] = {}  # input and output of the linear layer that ran last

    def keep(_layer: torch.nn.Module, inputs: tuple[Any, ...], answer: torch.Tensor) -> None:
        exported.update(given=inputs[0], answer=answer)

    with contextlib.ExitStack() as hooks, torch.no_grad():
        for layer in net.modules():
            if isinstance(layer, torch.nn.Linear):
                hooks.enter_context(layer.register_forward_hook(keep))
        logits = net(batch)
        has_embedding = bool(exported) and exported["given"].ndim == 2 and exported["answer"] is logits
        if has_embedding:
            hooks.enter_context(net.register_forward_hook(lambda _net, _inputs, answer: (answer, exported["given"])))
        _write(net, batch, path, ["logits", "embedding"] if has_embedding else ["logits"])
    return Example(batch.numpy(), logits.numpy())


def _write(net: torch.nn.Module, batch: torch.Tensor, path: Path, names: list[str]) -> None:
    """Trace the network and write it with these names of outputs; raises ManifestError if torch fails."""
    import torch

    try:
        # stdout: the exporter prints a whole graph that it cannot export. dynamo=False is deprecated, but the other
        # exporter cannot go below opset 18. Tracing warns of fixed sizes, which are intended for all but the batch; a
        # trial run tests two sizes of batch.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                net,
                (batch,),
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=["image"],
                output_names=names,
                dynamic_axes={name: {0: "n"} for name in ["image", *names]},
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ManifestError(f"torch cannot export it to ONNX of opset {OPSET}: {reason}; pull another model") from error
