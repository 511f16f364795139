"""What a recipe asks of each epoch, worked by hand."""

from __future__ import annotations

import pytest

from calibration.starter.train import RECIPES, WARM_UP_SHARE, Recipe, rate

TWO_STAGES = Recipe(
    epochs=30,
    seed=1,
    learning_rate=0.2,
    sides_px=((0.5, 32), (0.5, 48)),
    teachers=("l",),
    alone_epochs=20,
    taught_learning_rate=0.05,
)


def test_pictures_grow_over_the_first_stage_and_are_whole_after_it() -> None:
    assert [TWO_STAGES.side_px(epoch) for epoch in (0, 9, 10, 19, 20, 29)] == [32, 32, 48, 48, 64, 64]


def test_the_teachers_come_after_the_epochs_alone() -> None:
    assert [TWO_STAGES.is_taught(epoch) for epoch in (0, 19, 20, 29)] == [False, False, True, True]
    assert Recipe(epochs=2, seed=1, teachers=("l",)).is_taught(0)
    assert not Recipe(epochs=2, seed=1).is_taught(1)


def test_each_stage_has_a_learning_rate_that_rises_and_falls_to_zero() -> None:
    assert rate(TWO_STAGES, 0) == 0
    assert rate(TWO_STAGES, 20 * WARM_UP_SHARE) == pytest.approx(0.2)
    assert rate(TWO_STAGES, 20 * (1 + WARM_UP_SHARE) / 2) == pytest.approx(0.1)  # half way down
    assert rate(TWO_STAGES, 19.999) == pytest.approx(0, abs=1e-4)
    assert rate(TWO_STAGES, 20 + 10 * WARM_UP_SHARE) == pytest.approx(0.05)
    assert rate(TWO_STAGES, 30) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_ends_on_whole_pictures(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.side_px(recipe.epochs - 1) == 64
    assert recipe.side_px(recipe.first_stage - 1) == 64
    assert name not in recipe.teachers
