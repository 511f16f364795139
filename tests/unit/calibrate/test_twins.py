"""Which of two models that differ in their numbers alone keep their place, by times and accuracies made by hand."""

from __future__ import annotations

from jetsel.calibrate.retiming import judge_twins

TWINS = {"s-int8": "s", "l-int8": "l"}
ACCURACY = {"s": 0.50, "s-int8": 0.48, "l": 0.90, "l-int8": 0.897}


def test_eight_bits_that_are_not_clearly_faster_are_left_out_and_say_why() -> None:
    judged = judge_twins(TWINS, {"s": 4.0, "s-int8": 3.8, "l": 20.0, "l-int8": 26.0}, ACCURACY)
    assert judged.slower == {
        "s-int8": "takes 0.95 times as long as s here",
        "l-int8": "takes 1.3 times as long as l here",
    }
    assert judged.replaced == frozenset()


def test_a_model_of_32_bits_gives_way_to_any_of_8_bits_that_is_faster_and_as_accurate() -> None:
    costs_ms = {"s": 4.0, "s-int8": 2.0, "l": 20.0, "l-int8": 9.0}
    assert judge_twins(TWINS, costs_ms, ACCURACY).replaced == {"l"}, "s loses two points in 8 bits"
    fast = {**costs_ms, "l-int8": 3.0}
    assert judge_twins(TWINS, fast, ACCURACY).replaced == {"s", "l"}, "and l in 8 bits is faster than s, too"
