"""Few outcomes are held at a time, in the order given, whatever their number and however slow their taker is."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from jetsel.calibrate.record import workers
from jetsel.calibrate.record.database import Store
from tests.unit.calibrate.record.making import family


def test_outcomes_come_in_order_and_no_more_than_a_page_is_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "PAGE", 6)
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * item

    with Store(tmp_path / "recording.db", family("xs"), 4096) as store:
        outcomes = workers.Workers(store, 3, None, threading.Event()).work("recording", work, range(20))
        assert next(outcomes) == (0, 0)
        assert set(begun) <= set(range(6))
        assert list(outcomes) == [(item, item * item) for item in range(1, 20)]
