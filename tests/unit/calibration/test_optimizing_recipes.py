"""Which candidates are made: their order, their names and their inputs."""

from __future__ import annotations

from calibration.optimizing.recipes import Recipe, input_of, recipes, sides
from jetsel.image import InputSpec

SPEC = InputSpec(
    width_px=224,
    height_px=224,
    resize="shorter-side",
    interpolation="area",
    crop="center",
    channels="rgb",
    mean=(0.5, 0.5, 0.5),
    std=(0.5, 0.5, 0.5),
    resize_px=256,
)


def test_what_others_are_made_of_comes_first_and_all_that_computes_less_is_quantised_too() -> None:
    made = recipes(("smaller", "int8", "one-d", "clustered"), SPEC)
    floats = [recipe for recipe in made if recipe.numbers == "float32"]
    assert made[: len(floats)] == floats
    assert [recipe.suffix for recipe in floats] == ["192px", "160px", "128px", "96px", "one-d-70", "one-d-50"]
    eight = [recipe.suffix for recipe in made if recipe.numbers == "int8"]
    assert eight == ["int8", *(f"{recipe.suffix}-int8" for recipe in floats)]
    assert made[-1].suffix == "clustered"


def test_a_target_leaves_one_size() -> None:
    assert [recipe.suffix for recipe in recipes(("plain", "svd"), SPEC, 0.33)] == ["plain-33", "svd-33"]


def test_a_smaller_input_keeps_the_margin_that_is_cropped() -> None:
    small = input_of(Recipe(side_px=112), SPEC)
    assert (small.width_px, small.height_px, small.resize_px) == (112, 112, 128)
    assert input_of(Recipe(numbers="int8"), SPEC) == SPEC


def test_small_inputs_shrink_in_steps_of_eight() -> None:
    import msgspec

    small = msgspec.structs.replace(SPEC, width_px=64, height_px=64, resize_px=None)
    assert sides(small) == [56, 48, 40, 24]
