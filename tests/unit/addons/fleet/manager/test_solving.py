"""The program against trying everything: the same value, on instances drawn by a seed."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.papers.modi_plan import drawn, tried, worth
from jetsel.addons.fleet.manager.solving import TIE, CascadeOptions, Room, solve


@pytest.mark.parametrize("counts", [[3], [5], [2, 2], [3, 2]])
def test_nothing_is_worth_more_than_what_is_chosen(counts: list[int]) -> None:
    outcomes = set()
    for seed in range(30):
        families, room = drawn(counts, seed)
        chosen, best = solve(families, room), tried(families, room)
        outcomes.add(best is None)
        if chosen is None or best is None:
            assert chosen is best
        else:
            assert chosen.accuracy == pytest.approx(worth(families, room, chosen.rows), abs=1e-9)
            assert chosen.accuracy == pytest.approx(best, abs=3 * TIE)
    assert outcomes == {True, False}


def test_of_equal_choices_the_smaller_and_faster_is_taken() -> None:
    options = CascadeOptions(
        share=1.0,
        rate_hz=None,
        models=[("large",), ("small",)],
        accuracy=np.array([0.5, 0.5]),
        ms=np.array([2.0, 1.0]),
        mj=None,
        memory_mb=np.array([1.0, 1.0]),
        files=[{"a": 200}, {"b": 100}],
        always={},
    )
    for room in (Room(), Room(storage_bytes=150.0)):
        chosen = solve([options], room)
        assert chosen is not None
        assert chosen.rows == (1,)
