"""What a recipe asks of each epoch, and of a loss with a teacher, worked by hand."""

from __future__ import annotations

import math

import pytest
import torch

from calibration.starter.train import RECIPES, TEMPERATURE, WARM_UP_SHARE, Recipe, loss_of, rate

GROWING = Recipe(epochs=20, seed=1, learning_rate=0.2, sides_px=((0.5, 32), (0.4, 48), (0.1, 64)))


def test_pictures_grow() -> None:
    assert [GROWING.side_px(epoch) for epoch in (0, 9, 10, 17, 18, 19)] == [32, 32, 48, 48, 64, 64]


def test_the_learning_rate_rises_and_falls_to_zero() -> None:
    assert rate(GROWING, 0) == 0
    assert rate(GROWING, 20 * WARM_UP_SHARE) == pytest.approx(0.2)
    assert rate(GROWING, 20 * (1 + WARM_UP_SHARE) / 2) == pytest.approx(0.1)  # half way down
    assert rate(GROWING, 20) == pytest.approx(0, abs=1e-12)


def test_mixed_photographs_learn_from_both_labels_and_from_the_teacher_s_answers_to_both() -> None:
    # One photograph of each class, swapped by the mixing; the student knows nothing: every log probability is -log 2.
    logits, classes, other = torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([1, 0])
    sure = 2 * math.log(3) * TEMPERATURE / 2  # odds of 3 to 1 after the temperature
    taught = torch.tensor([[sure, 0.0], [0.0, sure]])
    divergence = (0.75 * math.log(0.75 * 2) + 0.25 * math.log(0.25 * 2)) * TEMPERATURE**2
    expected = 0.6 * divergence + 0.4 * math.log(2)
    assert float(loss_of(logits, classes, None, 1.0, taught, 0.6)) == pytest.approx(expected, rel=1e-5)
    assert float(loss_of(logits, classes, other, 0.7, taught, 0.6)) == pytest.approx(expected, rel=1e-5)
    knows = torch.tensor([[sure, 0.0], [0.0, sure]])  # what the teacher says: nothing to learn from it unmixed
    alone = loss_of(knows, classes, None, 1.0, taught, 1.0)
    mixed = loss_of(knows, classes, other, 0.7, taught, 1.0)
    assert float(alone) == pytest.approx(0, abs=1e-6)
    assert float(mixed) == pytest.approx(0.3 * 0.5 * math.log(3) * TEMPERATURE**2, rel=1e-5)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_ends_on_whole_pictures(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.side_px(recipe.epochs - 1) == 64
    assert name not in recipe.teachers
