"""Linux's own ina3221 driver over a chip whose registers we set: what its files say, and what jetsel reads there."""

from __future__ import annotations

import errno
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.board import Board
from tests.kernel.chips import Channel, ina238, ina3221
from tests.kernel.debian import WAITING
from tests.kernel.machine import Machine

TREES = Path(__file__).parent
CYCLE_MS = 6.6  # three channels, each 1.1 ms for its bus and 1.1 ms for its shunt: the chip's default

# A bus of 18,992 mV and 4,000 uV over 5 mOhm, which is 800 mA; 5,000 mV and 1,240 uV over 10 mOhm, 124 mA; 3,304 mV and
# 9,520 uV over 2 mOhm, 4,760 mA.
BUSY = Channel(18_992, 4_000), Channel(5_000, 1_240), Channel(3_304, 9_520)
SHUNTS_UOHM = 5_000, 10_000, 2_000


def labelled(board: Board, total: str = "VDD_IN") -> str:
    """A jetsel.toml that names the three channels, which have no labels where there is no device tree."""
    names = "VDD_IN", "VDD_CPU", "VDD_SOC"
    labels = ", ".join(f'"{board.device}/{number}" = "{name}"' for number, name in enumerate(names, 1))
    return f'[power]\nlabels = {{ {labels} }}\ntotal = ["{total}"]\n'


def recorded(chip: str) -> list[str]:
    """The files of a chip's driver in /sys, as this test once saw them."""
    return (TREES / f"{chip}.txt").read_text("utf-8").splitlines()


def with_shunts(board: Board) -> Board:
    for number, uohm in enumerate(SHUNTS_UOHM, 1):
        board.write(f"shunt{number}_resistor", uohm)
    return board


@pytest.fixture
def waiting(machine: Machine) -> Iterator[Board]:
    """The driver as it is on a board whose device tree asks for single conversions: it waits for each."""
    with Board(machine, driver=WAITING) as made:
        yield with_shunts(made)


def test_jetsel_reads_the_watts_that_the_registers_hold(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    seen = board.power(labelled(board))
    assert seen["rails"] == [
        {"name": "VDD_IN", "watts": 15.1936, "volts": 18.992, "amps": 0.8},
        {"name": "VDD_CPU", "watts": 0.62, "volts": 5.0, "amps": 0.124},
        {"name": "VDD_SOC", "watts": 15.72704, "volts": 3.304, "amps": 4.76},
    ]
    assert (seen["total_w"], seen["total_of"], seen["dropped"]) == (15.1936, ["VDD_IN"], [])


def test_a_second_reading_follows_the_registers(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    assert board.power(labelled(board))["total_w"] == 15.1936
    board.set(Channel(19_000, 40), *BUSY[1:])  # 8 mA, the least that this shunt shows
    assert board.power(labelled(board))["total_w"] == 0.152
    board.set(Channel(19_000, 0), *BUSY[1:])
    assert board.power(labelled(board))["total_w"] == 0.0


def test_a_rail_that_stays_open_follows_the_registers(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    assert board.reread(labelled(board), ina3221((Channel(19_000, 40), *BUSY[1:]))) == [15_193_600, 152_000]


def test_current_that_flows_back_is_below_zero(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    board.registers({1: -100 << 3 & 0xFFFF})  # 100 steps of 40 uV over 5 mOhm: 800 mA
    assert board.power(labelled(board))["rails"][0] == {
        "name": "VDD_IN", "watts": -15.1936, "volts": 18.992, "amps": -0.8,
    }  # fmt: skip


def test_a_channel_that_is_switched_off_is_dropped_and_the_rest_serve(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    board.write("in2_enable", 0)
    for file in ("in2_input", "curr2_input"):
        with pytest.raises(OSError) as refused:
            board.read(file)
        assert refused.value.errno == errno.ENODATA
    seen = board.power(labelled(board))
    assert [rail["name"] for rail in seen["rails"]] == ["VDD_IN", "VDD_SOC"]
    assert seen["total_w"] == 15.1936
    (dropped,) = seen["dropped"]
    assert dropped["name"] == "VDD_CPU"
    assert dropped["reason"]

    board.write("in2_enable", 1)
    assert len(board.power(labelled(board))["rails"]) == 3


def test_there_is_no_total_while_its_rail_is_switched_off(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    board.write("in1_enable", 0)
    seen = board.power(labelled(board))
    assert seen["total_w"] is None
    assert [rail["name"] for rail in seen["rails"]] == ["VDD_CPU", "VDD_SOC"]


def test_the_sum_of_the_shunts_is_no_rail(board: Board) -> None:
    board.set(*BUSY)  # three shunts of 10 mOhm: the driver adds the currents up
    assert board.read("in7_label") == "sum of shunt voltages"
    assert board.read("in7_input") == "14760"
    assert board.read("curr4_input") == "1476"
    assert len(board.power(labelled(board))["rails"]) == 3
    with_shunts(board)  # of different resistance: there is no sum
    for file in ("in7_input", "curr4_input"):
        with pytest.raises(OSError) as refused:
            board.read(file)
        assert refused.value.errno == errno.ENODATA


def test_channels_without_a_name_are_dropped_and_the_reason_says_how_to_name_them(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    status, out, err = board.jetsel("[power]\n")
    assert status != 0
    assert out == ""
    for number in (1, 2, 3):
        assert f'"{board.device}/{number}" = ' in err


def test_the_files_are_those_of_the_recorded_tree(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    assert board.listing() == recorded("ina3221")


def test_linux_as_it_is_now_waits_for_no_conversion(board: Board, said: list[str]) -> None:
    with_shunts(board).set(*BUSY, ready=False)
    seen = board.timed("in1_input", 300)
    assert {text for _, text in seen} == {"18992"}
    said.append(f"in1_input, continuous: {times(seen)}")


def test_the_waiting_driver_reads_at_once_while_a_conversion_is_ready(waiting: Board, said: list[str]) -> None:
    waiting.set(*BUSY)
    for file, text in (("in1_input", "18992"), ("curr1_input", "800")):
        seen = waiting.timed(file, 300)
        assert {value for _, value in seen} == {text}
        said.append(f"{file}, waiting, bit held: {times(seen)}")
    assert waiting.power(labelled(waiting))["total_w"] == 15.1936


def test_the_waiting_driver_gives_up_after_two_cycles_without_a_conversion(waiting: Board, said: list[str]) -> None:
    waiting.set(*BUSY, ready=False)
    for file in ("in1_input", "curr1_input"):
        seen = waiting.timed(file, 30)
        assert {value for _, value in seen} == {"ETIMEDOUT"}
        assert min(ns for ns, _ in seen) >= 2 * CYCLE_MS * 1e6
        said.append(f"{file}, waiting, bit never set: ETIMEDOUT, {times(seen)}")
    status, out, err = waiting.jetsel(labelled(waiting))
    assert status != 0
    assert out == ""
    assert "VDD_IN" in err


def test_jetsel_reads_the_power_of_an_ina238(machine: Machine) -> None:
    with Board(machine, "ina238", 0x44) as thor:
        thor.registers(ina238(bus_mv=20_000, current_ma=2_000))
        assert thor.listing() == recorded("ina238")
        seen = thor.power('[power]\ntotal = ["VIN"]\n')
    assert seen["rails"] == [{"name": "VIN", "watts": 40.0, "volts": 20.0, "amps": 2.0}]
    assert (seen["total_w"], seen["total_of"], seen["dropped"]) == (40.0, ["VIN"], [])


def times(seen: list[tuple[int, str]]) -> str:
    """The times of reads in words."""
    ordered = sorted(ns / 1000 for ns, _ in seen)
    p99 = ordered[round(0.99 * (len(ordered) - 1))]
    return f"{len(ordered)} reads of {statistics.median(ordered):.0f} us each, 99 % within {p99:.0f} us"
