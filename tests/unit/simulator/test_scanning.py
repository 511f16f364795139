"""What the simulator finds in trees, and how it shares power among rails and hides what a fault takes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator import trees
from tests.simulator.rails import Fault, Rail, shares
from tests.simulator.scanning import scan

BOARDS = sorted((Path(__file__).parents[2] / "data/sysfs").iterdir())


def test_jetpack_4_has_what_is_not_marked_as_unconnected(tmp_path: Path) -> None:
    folder = trees.iio(tmp_path).relative_to(tmp_path).as_posix()
    one, other = scan(tmp_path)
    assert (one.label, other.label, one.nominal_v, one.shunt_ohm) == ("VDD_IN", "VDD_CPU", 19.0, 0.01)
    assert other.files == {
        f"{folder}/in_voltage1_input": "voltage",
        f"{folder}/in_current1_input": "current",
        f"{folder}/in_power1_input": "power",
    }


def test_jetpack_4s_shunt_is_read_from_the_device_tree(tmp_path: Path) -> None:
    node = trees.iio(tmp_path).parent / "of_node/channel@1"
    node.mkdir(parents=True)
    (node / "ti,shunt-resistor-mohm").write_bytes(bytes([0, 0, 0, 20]))
    assert [one.shunt_ohm for one in scan(tmp_path)] == [0.01, 0.02]


def test_hwmon_says_its_shunts_and_what_is_switched_off(tmp_path: Path) -> None:
    folder = trees.hwmon(tmp_path)
    (folder / "in2_enable").write_text("0\n")
    (folder / "shunt3_resistor").write_text("2000\n")
    found = scan(tmp_path)
    assert [(one.label, one.shunt_ohm, one.enabled) for one in found] == [
        ("VDD_IN", 0.005, True),
        ("VDD_CPU", 0.005, False),
        ("VDD_SOC", 0.002, True),
    ]


def test_a_channel_without_a_label_is_named_by_its_place(tmp_path: Path) -> None:
    (trees.hwmon(tmp_path) / "in2_label").unlink()
    assert [one.label for one in scan(tmp_path)] == ["VDD_IN", "1-0040/2", "VDD_SOC"]


def test_the_other_sensors_are_found(tmp_path: Path) -> None:
    trees.ina238(tmp_path)
    trees.rapl(tmp_path)
    assert [(one.kind, one.label) for one in scan(tmp_path)] == [
        ("ina238", "VIN"),
        ("rapl", "package-0"),
        ("rapl", "package-0/core"),
    ]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_each_board_of_the_tests_has_live_rails_of_different_names(board: Path) -> None:
    found = scan(board)
    assert found
    assert len({one.label for one in found}) == len(found)
    assert all(one.files and " in " not in one.label for one in found)


def test_a_total_carries_all_and_the_rest_share_what_is_not_lost() -> None:
    assert shares(["VDD_IN", "VDD_CPU", "VDD_SOC"], None) == {"VDD_IN": 1.0, "VDD_CPU": 0.45, "VDD_SOC": 0.45}
    assert shares(["CPU", "GPU"], None) == {"CPU": 0.5, "GPU": 0.5}


def test_shares_that_are_given_are_all_there_are() -> None:
    assert shares(["CPU", "GPU"], {"GPU": 0.7}) == {"CPU": 0.0, "GPU": 0.7}
    with pytest.raises(ValueError, match="there is no rail CV: there are CPU, GPU"):
        shares(["CPU", "GPU"], {"CV": 0.7})


def test_a_rail_that_goes_takes_its_own_files(tmp_path: Path) -> None:
    folder = trees.iio(tmp_path)
    one, other = (Rail(each.label, each.folder, each.owns) for each in scan(tmp_path))
    one.suffer(Fault("gone"))
    inside = {name.name for name in folder.iterdir() if one.hides(name.relative_to(tmp_path).as_posix())}
    assert inside == {
        "rail_name_0",
        "crit_current_limit_0",
        "in_voltage0_input",
        "in_current0_input",
        "in_power0_input",
    }
    assert not any(other.hides(name.relative_to(tmp_path).as_posix()) for name in folder.iterdir())


def test_a_hwmon_channel_owns_the_file_of_its_shunt(tmp_path: Path) -> None:
    folder = trees.hwmon(tmp_path)
    second = scan(tmp_path)[1]
    assert {name.name for name in folder.iterdir() if second.owns(name.name)} == {
        "in2_label",
        "in2_input",
        "in2_enable",
        "curr2_input",
        "in5_input",
        "shunt2_resistor",
    }
