"""The energy of each kind of simulated power, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.trace import Writer
from tests.simulator import constant, function, level, recorded, square
from tests.simulator.sources import Level

S = 1_000_000_000


def test_constant_power_is_watts_times_seconds() -> None:
    source = constant(3.0).source()
    assert source.energy_j(2 * S) - source.energy_j(S // 2) == pytest.approx(4.5)


def test_a_square_wave_begins_high() -> None:
    source = square(period_s=1.0, duty=0.25, low_w=3.0, high_w=8.0).source()
    # Until 0.1 s: 0.8 J. A period: 2 + 2.25 J. 2.5 s: two periods, 2 J and 0.25 s of 3 W.
    assert source.energy_j(S // 10) == pytest.approx(0.8)
    assert source.energy_j(S) == pytest.approx(4.25)
    assert source.energy_j(5 * S // 2) == pytest.approx(8.5 + 2.0 + 0.75)


def test_a_square_wave_was_there_before_it_began() -> None:
    source = square(period_s=1.0, duty=0.25, low_w=3.0, high_w=8.0).source()
    assert source.energy_j(-S // 4) == pytest.approx(-0.75)  # the end of a period, low


def test_a_trace_holds_each_row_and_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with path.open("w") as file:
        writer = Writer(file, None, ["A", "B", "C"], ["A", "B"], [None, None, None])
        for row, (a_w, b_w) in enumerate([(1.0, 2.0), (4.0, 5.0), (2.0, 0.0)]):
            writer.row(10.0 + row, [a_w, b_w, 100.0])  # C is no part of the total
    source = recorded(path).source()
    # 3, 9 and 2 W, a second each, the last as long as a row is in the mean.
    assert [source.energy_j(at * S) for at in (1, 2, 3, 4)] == pytest.approx([3.0, 12.0, 14.0, 17.0])
    assert source.energy_j(3 * S // 2) == pytest.approx(3.0 + 4.5)


def test_a_trace_with_a_gap_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with path.open("w") as file:
        writer = Writer(file, None, ["A"], ["A"], [None])
        writer.row(0.0, [1.0])
        writer.row(1.0, [None])
    with pytest.raises(ValueError, match="it has gaps"):
        recorded(path).source()


def test_a_function_of_time_is_integrated() -> None:
    source = function("tests.simulator.waves:rising").source()
    assert source.energy_j(3 * S) == pytest.approx(9.0)  # 2t from 0 to 3
    assert source.energy_j(S) == pytest.approx(1.0)
    assert source.energy_j(-S) == 0.0  # before the beginning it stood still


def test_a_level_holds_from_the_moment_it_was_written() -> None:
    source = level(3.0).source()
    assert isinstance(source, Level)
    source.set(8.0, 2 * S)
    source.set(1.0, 3 * S)
    # 3 W for 2 s, 8 W for 1 s, then 1 W.
    assert [source.energy_j(at * S) for at in (1, 2, 3, 5)] == pytest.approx([3.0, 6.0, 14.0, 16.0])
