"""The convolutional premodel on pictures whose colour says which model to choose."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from calibration.papers.taylor.network import choose_by_network

COLOURS = np.array([[220, 40, 40], [40, 220, 40], [40, 40, 220]])


def coloured(optimum: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Noise around one colour for each model, (n, 3, 32, 32)."""
    noise = np.random.default_rng(0).integers(-35, 36, (len(optimum), 3, 32, 32))
    return (COLOURS[optimum][:, :, None, None] + noise).astype(np.uint8)


def test_colours_that_tell_are_learned_and_every_run_chooses_alike() -> None:
    optimum = np.arange(600) % 3
    fold_of = np.arange(600) // 3 % 10
    pictures = coloured(optimum)
    threads = torch.get_num_threads()
    found = choose_by_network(pictures, optimum, 3, fold_of)
    assert torch.get_num_threads() == threads
    chosen, choice_ms = found
    assert (chosen == optimum).mean() > 0.98
    assert choice_ms > 0
    again = choose_by_network(pictures, optimum, 3, fold_of)
    assert again[0].tolist() == chosen.tolist()


def test_a_photograph_s_own_optimum_is_not_learned() -> None:
    # In the folds that are held out together, 0 and 5, the colours mean the other model: nobody could know.
    optimum, fold_of = np.arange(400) % 2, np.arange(400) // 2 % 10
    told = np.where(fold_of % 5 == 0, 1 - optimum, optimum)
    found = choose_by_network(coloured(optimum), told, 2, fold_of)
    assert (found[0] == told)[fold_of % 5 == 0].mean() < 0.1
