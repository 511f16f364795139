"""The paper's losses on vectors whose distances are plain: the same way 0, square 0.5, opposite 1."""

from __future__ import annotations

import math

import pytest
import torch

from jetsel.train.multiplexer.losses import CLIP, TINY, contrastive, distance, distillation, ensemble

pytestmark = pytest.mark.export
EAST, NORTH, WEST = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), torch.tensor([-2.0, 0.0])


def test_the_distance_is_from_0_to_1_and_knows_no_length() -> None:
    assert distance(torch.stack([EAST, EAST, EAST]), torch.stack([EAST, NORTH, WEST])).tolist() == pytest.approx(
        [0.0, 0.5, 1.0]
    )


@pytest.mark.parametrize(
    ("right", "due"),
    [
        ([True, True], math.log(0.5)),  # brought together: the smaller, the better
        ([True, False], -math.log(0.5 + TINY)),  # moved apart
        ([False, False], 0.0),
    ],
)
def test_pairs_are_told_by_who_is_right(right: list[bool], due: float) -> None:
    projected = torch.stack([EAST, NORTH])[None]
    assert contrastive(projected, torch.tensor([right])).item() == pytest.approx(due)


def test_near_embeddings_are_pulled_no_nearer_but_still_pushed_apart() -> None:
    near = torch.tensor([[[1.0, 0.0], [1.0, 0.1]]])  # (1 - cos) / 2 is 0.0025
    pulled, pushed = near.clone().requires_grad_(True), near.clone().requires_grad_(True)
    loss = contrastive(pulled, torch.tensor([[True, True]]))
    assert loss.item() == pytest.approx(math.log(CLIP))
    loss.backward()
    assert not pulled.grad.any()
    contrastive(pushed, torch.tensor([[True, False]])).backward()
    assert torch.isfinite(pushed.grad).all()
    assert pushed.grad[0, 1, 1] < 0, "a step down the gradient moves it away"


def test_of_three_models_each_pair_counts_alike() -> None:
    projected = torch.stack([EAST, NORTH, WEST])[None]
    told = contrastive(projected, torch.tensor([[True, True, False]])).item()
    pairs = [math.log(0.5), -math.log(1 + TINY), -math.log(0.5 + TINY)]
    assert told == pytest.approx(sum(pairs) / 3, abs=1e-6)


def test_the_ensemble_is_judged_by_what_it_gives_the_true_class() -> None:
    weights, likely = torch.tensor([[0.25, 0.75], [1.0, 0.0]]), torch.tensor([[0.2, 0.6], [0.5, 0.9]])
    assert ensemble(weights, likely).item() == pytest.approx(-(math.log(0.5) + math.log(0.5)) / 2)


def test_distillation_adds_the_distances_from_each_model() -> None:
    assert distillation(EAST[None], torch.stack([NORTH, WEST])[None]).item() == pytest.approx(1.5)
