"""Networks to export."""

from __future__ import annotations

import torch

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
