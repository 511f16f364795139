"""Few outcomes are held at a time, in the order given, whatever their number and however slow their taker is."""

from __future__ import annotations

import pytest

from jetsel.calibrate.record import bounded
from jetsel.calibrate.record.bounded import in_order


def test_outcomes_come_in_order_and_no_more_than_a_page_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "PAGE", 6)
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    outcomes = in_order(work, range(20), workers=3)
    assert next(outcomes) == (0, 0)
    assert set(begun) <= set(range(6))
    assert list(outcomes) == [(item, item * item) for item in range(1, 20)]
