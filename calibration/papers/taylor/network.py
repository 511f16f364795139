"""The small convolutional network of Figure 9 of Taylor et al. (section 5.2) as premodel. Needs torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel import image

PARTS = 5  # trainings: each holds out every fifth fold
EPOCHS = 6  # the paper's 500 and its tuner are out of reach here
BATCH = 128
LEARNING_RATE = 2e-3
SEED = 2018
TIMED = 50  # single predictions in each part
PICTURE_PX = 32

Tensor = Any  # torch's


def choose_by_network(
    pictures: NDArray[np.uint8], optimum: NDArray[np.int64], models: int, fold_of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], float]:
    """Return the model that a network names for each held-out photograph, (n,), and its median time in ms.

    pictures: (n, 3, 32, 32) uint8. optimum: (n,) the model to name, 0 to models - 1. fold_of: (n,), at least two folds.
    A fifth of the folds is held out at a time: five trainings instead of ten.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for one another: on a busy machine, training then takes 6 times as long
    x = torch.from_numpy(pictures).float().div(127.5).sub(1)
    y = torch.from_numpy(optimum)
    chosen, times_ms = np.zeros(len(pictures), np.int64), []
    _, fold = np.unique(fold_of, return_inverse=True)
    for part in range(min(PARTS, int(fold.max()) + 1)):
        held, rest = np.flatnonzero(fold % PARTS == part), np.flatnonzero(fold % PARTS != part)
        net = _trained(x[rest], y[rest], models, SEED + part)
        with torch.inference_mode():
            chosen[held] = net(x[held]).argmax(1).numpy()
            for row in held[:TIMED]:
                began = time.perf_counter()
                net(x[row][None])
                times_ms.append((time.perf_counter() - began) * 1e3)
    torch.set_num_threads(threads)
    return chosen, float(np.median(times_ms))


def _trained(x: Tensor, y: Tensor, models: int, seed: int) -> Any:
    """A network of three convolutions that names y (n,) from x (n, 3, height, width)."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, models))
    optimiser = torch.optim.Adam(net.parameters(), LEARNING_RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            loss = functional.cross_entropy(net(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval()


def small_pictures(paths: Sequence[str], limits: image.Limits) -> NDArray[np.uint8]:
    """Return every photograph at 32 x 32, (n, 3, 32, 32) uint8. Raises OSError for one that is gone."""
    pictures = np.empty((len(paths), 3, PICTURE_PX, PICTURE_PX), np.uint8)
    for row, path in enumerate(paths):
        bgr = image.decode(image.read_file(Path(path), limits), limits, PICTURE_PX).bgr
        pictures[row] = cv2.resize(bgr, (PICTURE_PX, PICTURE_PX), interpolation=cv2.INTER_AREA).transpose(2, 0, 1)
    return pictures
