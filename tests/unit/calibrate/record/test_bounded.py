"""Few things are held at a time, in the order given, whatever their number and however slow their taker is."""

from __future__ import annotations

import threading

import pytest

from jetsel.calibrate.record.bounded import in_order


def test_outcomes_come_in_order_and_few_are_held() -> None:
    lock = threading.Lock()
    begun = taken = most = 0

    def work(item: int) -> int:
        nonlocal begun, most
        with lock:
            begun += 1
            most = max(most, begun - taken)
        return item * item

    outcomes = []
    for item, outcome in in_order(work, iter(range(100)), workers=3):
        with lock:
            taken += 1
        outcomes.append((item, outcome))
    assert outcomes == [(item, item * item) for item in range(100)]
    assert most <= 6


def test_an_exception_of_the_work_is_raised_in_its_turn() -> None:
    outcomes = in_order(lambda item: 6 // item, [3, 2, 0, 1], workers=2)
    assert [next(outcomes), next(outcomes)] == [(3, 2), (2, 3)]
    with pytest.raises(ZeroDivisionError):
        next(outcomes)
