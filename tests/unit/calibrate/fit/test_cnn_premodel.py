"""A convolutional premodel learns what a picture shows, from other folds alone; without torch there is none."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from jetsel.calibrate.fit.cnn_premodel import choose_by_network


@pytest.mark.export
def test_it_learns_which_colour_names_which_model() -> None:
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(0)
    optimum = draw.integers(0, 3, 400)
    pictures = draw.integers(0, 60, (400, 3, 32, 32)).astype(np.uint8)
    pictures[np.arange(400), optimum] += 120
    threads = torch.get_num_threads()
    found = choose_by_network(pictures, optimum, 3, np.arange(400) % 2)
    assert found is not None
    chosen, choice_ms = found
    assert (chosen == optimum).mean() > 0.9
    assert choice_ms > 0
    assert torch.get_num_threads() == threads


@pytest.mark.export
def test_what_a_fold_shows_is_not_learned_from_itself() -> None:
    pytest.importorskip("torch")
    # Each fold has a colour of its own, which tells its model there and nothing anywhere else.
    fold_of = np.arange(200) % 2
    pictures = np.zeros((200, 3, 32, 32), np.uint8)
    pictures[np.arange(200), fold_of] = 200
    found = choose_by_network(pictures, fold_of, 2, fold_of)
    assert found is not None
    assert found[0].tolist() == (1 - fold_of).tolist()


def test_without_torch_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert choose_by_network(np.zeros((4, 3, 32, 32), np.uint8), np.zeros(4, np.int64), 1, np.arange(4)) is None
