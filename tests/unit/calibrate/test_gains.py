"""What cascades gain by more models, on photographs that fitted nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jetsel.calibrate.candidates import judged
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.gains import budgets_ms, gains, gains_on
from jetsel.calibrate.recording import Recording
from tests.unit.calibrate.recorded import drawn

SERVED = ("s", "l")


def with_candidates(seed: int) -> Recording:
    """Models s, m and l; `m-int8` says what `m` says at half its time, and `noise` is slow and says nothing."""
    base = drawn(seed, 600)
    noise = np.random.default_rng(9).normal(size=base.logits[0].shape).astype(np.float32)
    logits = np.stack([base.logits[0], base.logits[1], base.logits[1], noise, base.logits[2]])
    names = ("s", "m-int8", "m", "noise", "l")
    costs_ms = {"s": 1.0, "m-int8": 1.5, "m": 3.0, "noise": 9.0, "l": 10.0}
    return replace(base, models=names, logits=logits, costs_ms=costs_ms)


def test_a_rung_as_good_and_faster_is_used_and_saves_time() -> None:
    recording = with_candidates(1)
    folds = assign_folds(np.arange(600), 10, 1)
    found = gains(recording, SERVED, ("m-int8", "m", "noise"), folds)
    assert [gain.budget_ms for gain in found] == budgets_ms(recording, SERVED) == [10.0, 5.0, 2.5]
    half = found[1]
    assert half.points_interval.low > 0
    assert "m-int8" in half.rungs
    assert not {"m", "noise"} & set(half.rungs)
    assert all(gain.time_ratio < 1 for gain in found)
    assert abs(half.after_ms - 5.0) < 0.5


def test_nothing_is_gained_by_a_model_that_says_nothing() -> None:
    recording = with_candidates(2)
    found = gains(recording, SERVED, ("noise",), assign_folds(np.arange(600), 10, 1))
    assert all(gain.points == 0 and gain.time_points == 0 and gain.time_ratio == 1 for gain in found)


def test_on_other_photographs_it_is_what_was_fitted_that_counts() -> None:
    fit, other = with_candidates(1), with_candidates(7)
    slower = replace(other, costs_ms={name: 5 * ms for name, ms in other.costs_ms.items()})
    found = gains_on(slower, fit, SERVED, ("m-int8",))
    assert found == gains_on(other, fit, SERVED, ("m-int8",))
    assert found[1].points > 0


def test_candidates_are_judged_beside_their_parent() -> None:
    verdict = judged(with_candidates(1), "l", SERVED, 60.0, 0.5, {"m": "too slow"})
    by_name = {one.name: one for one in verdict.models}
    assert [one.name for one in verdict.models] == ["s", "m-int8", "m", "noise", "l"]
    assert verdict.entered == ["m-int8"]
    assert by_name["m-int8"].in_front
    assert by_name["m"].left_out == "too slow"
    assert by_name["l"].agreement == 1.0
    assert by_name["l"].drop == 0
    lost = 100 * (by_name["l"].top1 - by_name["m"].top1)
    assert abs(by_name["m"].drop - lost) < 1e-9
    assert "--max-drop allows 60" in (by_name["noise"].left_out or "")
    assert "noise" not in {name for _, _, name in verdict.front}
