"""Traces: what the writer writes the reader reads, what is damaged is named, and playing goes at its own pace."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from jetsel import __version__
from jetsel.power import trace
from jetsel.power.sensors.rail import Measured, RailError
from jetsel.power.trace import Writer, read
from tests.unit.power.trees import written


def test_the_file_is_a_comment_of_what_it_is_and_csv(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.csv", (0.0, 3.05, 0.457), (0.001, 8.0, None))
    assert path.read_text().splitlines() == [
        f'# jetsel {__version__} {{"board":"jetson-tx2","rails":["VDD_IN","VDD_SYS_GPU"],"total_of":["VDD_IN"],'
        '"resolution_w":[0.15,null]}',
        "t_s,VDD_IN,VDD_SYS_GPU",
        "0.000000,3.050000,0.457000",
        "0.001000,8.000000,",
    ]


def test_any_names_and_powers_survive(tmp_path: Path) -> None:
    names, watts = ["VDD_IN", 'a,b "c"', "\\ {x}"], [-0.000001, None, 1e6]
    path = tmp_path / "trace.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        Writer(file, None, names, names[:1], [None] * 3).row(0.0, watts)
    trace = read(path)
    assert trace.rails == tuple(names)
    assert [None if math.isnan(each) else each for each in trace.watts[0]] == watts


def test_a_row_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.csv", (0.0, 3.05, 0.457), (0.001, 8.0, 1.0))
    path.write_text(path.read_text()[:-4])  # 1.00 in place of 1.000000: complete to look at
    assert list(read(path).times_s) == [0.0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0.001,8.0", "line 4: 2 cells for 3 columns"),
        ("0.0,8.0,1.0", "line 4: its time"),
        ("nan,8.0,1.0", "line 4: its time"),
        ("0.001,8.0,x", "line 4"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, row: str, words: str) -> None:
    path = written(tmp_path / "trace.csv", (0.0, 3.05, 0.457))
    path.write_text(f"{path.read_text()}{row}\n")
    with pytest.raises(RailError, match=words):
        read(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("# jetsel 0.1.0 {}\nt_s\n", "line 1"),
        ('# jetsel 0.1.0 {"board":null,"rails":["A"],"total_of":["B"],"resolution_w":[null]}\n', "do not agree"),
        ('# jetsel 0.1.0 {"board":null,"rails":["A"],"total_of":[],"resolution_w":[null]}\nt_s,B\n', "line 2"),
        ('# jetsel 0.1.0 {"board":null,"rails":["A"],"total_of":[],"resolution_w":[null]}\nt_s,A\n', "no rows"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(RailError, match=words):
        read(path)


def test_playing_begins_at_the_first_row_and_knows_what_the_trace_does(tmp_path: Path) -> None:
    detected, board = trace.detect(written(tmp_path / "trace.csv", (7.0, 3.05, 0.457), (3600.0, 8.0, 1.0)))
    assert (board, detected.total) == ("jetson-tx2", ("VDD_IN",))
    rail = detected.rails[0]
    assert (rail.name, rail.read_uw(), rail.resolution_w) == ("VDD_IN", 3_050_000, 0.15)
    assert rail.measure() == Measured(3.05, None, None)


def test_where_nothing_was_read_nothing_is_played(tmp_path: Path) -> None:
    detected, _ = trace.detect(written(tmp_path / "trace.csv", (0.0, 3.05, None)))
    assert detected.rails[0].read_uw() == 3_050_000
    with pytest.raises(RailError, match="not read then"):
        detected.rails[1].read_uw()


def test_playing_holds_each_value_until_the_next_and_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_ms = [0]
    monkeypatch.setattr(trace.time, "monotonic_ns", lambda: clock_ms[0] * 1_000_000)
    path = written(tmp_path / "trace.csv", (0.0, 1.0, 0.0), (0.2, 2.0, 0.0), (0.4, 3.0, 0.0))
    rail = trace.detect(path)[0].rails[0]

    def at(ms: int) -> int:
        clock_ms[0] = ms
        return rail.read_uw() // 1_000_000

    assert [at(ms) for ms in (0, 100, 300, 390, 500, 700, 900, 1100)] == [1, 1, 2, 2, 3, 1, 2, 3]
