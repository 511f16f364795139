"""Linux's own ina3221 driver over a chip whose registers we set: what its files say, and what jetsel reads there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.kernel.board import Board
from tests.kernel.chips import Channel, ina238, ina3221
from tests.kernel.machine import Machine

TREES = Path(__file__).parent

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


def test_jetsel_reads_the_watts_that_the_registers_hold(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    seen = board.power(labelled(board))
    assert seen["rails"] == [
        {"name": "VDD_IN", "watts": 15.1936, "volts": 18.992, "amps": 0.8},
        {"name": "VDD_CPU", "watts": 0.62, "volts": 5.0, "amps": 0.124},
        {"name": "VDD_SOC", "watts": 15.72704, "volts": 3.304, "amps": 4.76},
    ]
    assert (seen["total_w"], seen["total_of"], seen["dropped"]) == (15.1936, ["VDD_IN"], [])


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
    board.write("in1_enable", 0)
    seen = board.power(labelled(board))
    assert ([rail["name"] for rail in seen["rails"]], seen["total_w"]) == (["VDD_CPU", "VDD_SOC"], None)


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


def test_the_files_are_those_of_the_recorded_tree(board: Board) -> None:
    with_shunts(board).set(*BUSY)
    assert board.listing() == recorded("ina3221")


def test_jetsel_reads_the_power_of_an_ina238(machine: Machine) -> None:
    with Board(machine, "ina238", 0x44) as thor:
        thor.registers(ina238(bus_mv=20_000, current_ma=2_000))
        assert thor.listing() == recorded("ina238")
        seen = thor.power('[power]\ntotal = ["VIN"]\n')
    assert seen["rails"] == [{"name": "VIN", "watts": 40.0, "volts": 20.0, "amps": 2.0}]
    assert (seen["total_w"], seen["total_of"], seen["dropped"]) == (40.0, ["VIN"], [])
