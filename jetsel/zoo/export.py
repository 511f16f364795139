"""Write a torch classifier as an ONNX file with two outputs: its logits, and the embedding that they are read from."""

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
_BATCH = 2  # of the example: an embedding whose first side is not the batch shows


class Example(NamedTuple):
    """What torch answers. batch: (2, 3, height, width) float32; logits: (2, classes) float32."""

    batch: NDArray[np.float32]
    logits: NDArray[np.float32]


def export(net: torch.nn.Module, path: Path, height_px: int, width_px: int) -> Example:
    """Write the network for any batch size, batch normalisation folded in; return what it answers on a pattern.

    The embedding is what its last linear layer reads; a network that ends otherwise has none. Only torch is needed to
    call it. Raises ManifestError if torch cannot export it.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    batch = torch.randn(_BATCH, 3, height_px, width_px, generator=generator)
    net = net.eval()
    exported: dict[str, torch.Tensor] = {}  # of the linear layer that ran last

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
    """Trace the network and write what it answers, under these names; raises ManifestError."""
    import torch

    try:
        # What cannot be exported is printed whole. torch deprecates this exporter; the one that it prefers cannot go
        # below opset 18. Tracing warns of sizes that it takes for fixed: all but the batch are, and the daemon runs two
        # sizes of batch.
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
