"""Models that a cheaper one makes superfluous: the interval by hand, and when a model is recorded no further."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from jetsel.calibrate.record import load, record, recorder
from jetsel.calibrate.record.dominated import Dominated, dominated, most_likely_share
from jetsel.engines import Engine
from tests.unit.calibrate.record.making import QUICK, family, found, put, rows

BOTH = family("xs", "s")


@pytest.mark.parametrize(
    ("count", "n", "share"),
    [
        pytest.param(0, 300, 1 - 0.05 ** (1 / 300), id="none seen: 0.95 is one minus the chance to see none"),
        pytest.param(1, 10, 0.394163, id="the table of Clopper and Pearson"),
        pytest.param(10, 10, 1.0, id="all"),
    ],
)
def test_the_interval_of_a_share_is_that_of_the_table(count: int, n: int, share: float) -> None:
    assert most_likely_share(count, n) == pytest.approx(share, abs=1e-6)


def right(*alone: int, n: int = 300) -> np.ndarray:
    """Right on the first half and on these images of the second."""
    values = np.arange(n) < n // 2
    values[[n // 2 + one for one in alone]] = True
    return values


def test_a_model_goes_if_a_clearly_cheaper_one_is_right_wherever_it_is() -> None:
    times_ms = {"s": 1.0, "m": 2.0, "l": 4.0}
    models = {"s": right(), "m": right(), "l": right(1, 2)}
    assert dominated(models, times_ms) == [Dominated("m", "s")]
    assert dominated({"s": right(), "m": right(0)}, times_ms) == [], "one in 300 may be more than 1 %"
    assert dominated({"s": right(n=290), "m": right(n=290)}, times_ms) == [], "too few images to be sure"
    assert dominated({"s": right(), "m": right()}, {"s": 1.0, "m": 1.05}) == [], "either may be the cheaper one"


def test_a_dropped_model_is_recorded_no_further_until_all_are_asked_for(
    tmp_path: Path, engines: Mapping[str, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "LEAST_IMAGES", 4)
    monkeypatch.setattr(recorder, "dominated", lambda right, _: [Dominated("s", "xs")] if "s" in right else [])
    images, path = put(tmp_path / "photos", 8), tmp_path / "recording.db"
    one = dataclasses.replace(QUICK, workers=1)
    record(path, BOTH, engines, found(images), one)
    loaded = load(path, BOTH)
    assert loaded.recording.models == ("xs",)
    assert len(loaded.recording.classes) == 8
    assert "first 4 images" in loaded.dropped["s"]
    record(path, BOTH, engines, found(images), dataclasses.replace(one, all_models=True))
    assert load(path, BOTH).dropped == {}
    assert len(rows(path, "SELECT 1 FROM predictions")) == 16
