"""Write a torch classifier as an ONNX file with two outputs: its logits, and the embedding that they are read from."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import ManifestError

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
    call it. Raises ManifestError where torch cannot export it.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    batch = torch.randn(_BATCH, 3, height_px, width_px, generator=generator)
    net = net.eval()
    with torch.no_grad(), _Watched(net) as watched:
        logits = net(batch)
        has_embedding = watched.seen is not None and watched.seen.ndim == 2 and watched.answer is logits
    names = ["logits", "embedding"] if has_embedding else ["logits"]
    try:
        quiet = contextlib.redirect_stdout(io.StringIO())  # what cannot be exported is printed whole
        with quiet, warnings.catch_warnings(), torch.no_grad(), _Watched(net) as watched:
            # torch deprecates this exporter, and the one that it prefers cannot go below opset 18. Tracing warns of
            # sizes that it takes for fixed: all but the batch are, and the daemon runs two sizes of batch.
            warnings.simplefilter("ignore")
            if has_embedding:
                watched.answer_with_embedding()
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
    return Example(batch.numpy(), logits.numpy())


class _Watched:
    """What the linear layer that ran last was given and answered, for as long as a `with` lasts."""

    def __init__(self, net: torch.nn.Module) -> None:
        self._net = net
        self.seen: torch.Tensor | None = None
        self.answer: torch.Tensor | None = None

    def __enter__(self) -> _Watched:
        import torch

        layers = [module for module in self._net.modules() if isinstance(module, torch.nn.Linear)]
        self._hooks = [layer.register_forward_hook(self._keep) for layer in layers]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def answer_with_embedding(self) -> None:
        """Have the network answer both."""
        self._hooks.append(self._net.register_forward_hook(lambda _net, _inputs, logits: (logits, self.seen)))

    def _keep(self, _layer: torch.nn.Module, inputs: tuple[Any, ...], answer: torch.Tensor) -> None:
        self.seen, self.answer = inputs[0], answer
