"""Finding: every board's rails and total, what the settings change, no rail twice, no total with a rail missing."""

from pathlib import Path

import msgspec
import pytest

from jetsel.base.config import Power
from jetsel.base.errors import ConfigError
from jetsel.power import finding
from jetsel.power.finding import FoundRails, recognise_board
from tests.data.sysfs_trees import BOARDS, tree
from tests.unit.power.machines import ALWAYS_EIO, Channel, copied, hwmon, moving, replace, zone

TX2 = "VDD_SYS_GPU VDD_SYS_SOC VDD_4V0_WIFI VDD_IN VDD_SYS_CPU VDD_SYS_DDR"
CARRIER = "VDD_MUX VDD_5V0_IO_SYS VDD_3V3_SYS VDD_3V3_IO_SLP VDD_1V8_IO VDD_3V3_SYS_M2"
RAILS = {
    "jetson-tx2": (TX2, "VDD_IN"),
    "jetson-tx2-carrier": (f"{TX2} {CARRIER}", "VDD_IN"),
    "jetson-nano": ("POM_5V_IN POM_5V_GPU POM_5V_CPU", "POM_5V_IN"),
    "jetson-xavier-nx": ("VDD_IN VDD_CPU_GPU_CV VDD_SOC", "VDD_IN"),
    "jetson-agx-xavier": ("GPU CPU SOC CV VDDRQ SYS5V", "GPU CPU SOC CV VDDRQ SYS5V"),
    "jetson-orin-nano": ("VDD_IN VDD_CPU_GPU_CV VDD_SOC", "VDD_IN"),
    "jetson-agx-orin": ("VDD_GPU_SOC VDD_CPU_CV VIN_SYS_5V0 VDDQ_VDD2_1V8AO", "VDD_GPU_SOC VDD_CPU_CV VIN_SYS_5V0"),
    "jetson-agx-thor": ("VDD_GPU VDD_CPU_SOC_MSS VIN_SYS_5V0 VIN", "VIN"),
}
"""The rails of each board, and those of its total."""


def find(sysfs: Path, **others: object) -> FoundRails:
    """Find and close again: what was found can still be looked at."""
    found = finding.find_rails(msgspec.convert({"sysfs": str(sysfs), **others}, Power))
    found.close()
    return found


@pytest.mark.parametrize("board", BOARDS)
def test_every_board_has_its_rails_and_its_total(board: str) -> None:
    rails, total = RAILS[board]
    found = find(tree(board))
    assert found.board.name == board.removesuffix("-carrier")
    assert " ".join(rail.name for rail in found.rails) == rails
    assert (" ".join(found.total_of), found.reason, found.dropped) == (total, None, ())


def test_a_copy_of_a_whole_board_is_looked_into(tmp_path: Path) -> None:
    copied("jetson-tx2", tmp_path).rename(tmp_path / "sys")
    (tmp_path / "etc").mkdir()
    assert find(tmp_path).total_of == ("VDD_IN",)


def test_a_total_in_the_settings_is_before_the_table_and_counts_a_name_once() -> None:
    found = find(tree("jetson-agx-orin"), total=["VDDQ_VDD2_1V8AO", "VDD_CPU_CV", "VDD_CPU_CV"])
    assert (found.total_of, found.reason) == (("VDD_CPU_CV", "VDDQ_VDD2_1V8AO"), None)


@pytest.mark.parametrize(
    ("board", "total", "said"),
    [
        ("jetson-tx2", ["VDD_SYS_GPU", "VDD_IN"], "VDD_SYS_GPU is a part of VDD_IN"),
        ("jetson-nano", ["VDD_IN"], "POM_5V_IN, POM_5V_GPU, POM_5V_CPU"),
    ],
)
def test_a_total_that_counts_twice_or_is_not_there_is_none_with_the_reason(
    board: str, total: list[str], said: str
) -> None:
    found = find(tree(board), total=total)
    assert found.total == ()
    assert said in str(found.reason)


def test_a_rail_of_the_total_that_is_dropped_leaves_no_total_rather_than_a_smaller_one(tmp_path: Path) -> None:
    sysfs = copied("jetson-agx-xavier", tmp_path)
    replace(sysfs / "devices/c240000.i2c/i2c-1/1-0041/iio:device6/in_power1_input", ALWAYS_EIO)
    found = find(sysfs)
    assert [rail.name for rail in found.rails] == ["GPU", "CPU", "SOC", "CV", "SYS5V"]
    assert found.total == ()
    assert str(found.reason).startswith("VDDRQ is part of the total")
    assert "Input/output error" in str(found.reason)


@pytest.mark.parametrize(
    ("rails", "settings", "board", "total"),
    [
        (("VDD_IN", "VDD_OTHER"), {}, None, ("VDD_IN",)),  # an unknown board with a known input
        (("VDD_LEFT", "VDD_RIGHT"), {}, None, ()),  # no sum is guessed
        (("GPU", "VDD_IN"), {"board": "jetson-tx2"}, "jetson-tx2", ("VDD_IN",)),  # before the device tree
    ],
)
def test_without_a_known_device_tree_a_known_input_or_the_settings_make_the_total(
    tmp_path: Path, rails: tuple[str, str], settings: dict[str, str], board: str | None, total: tuple[str, ...]
) -> None:
    hwmon(tmp_path, *(Channel(name, 5000, 800) for name in rails))
    found = find(tmp_path, **settings)
    assert (found.board_name, found.total_of, len(found.rails)) == (board, total, 2)
    assert (found.reason is None) == bool(total)
    assert total or ", ".join(rails) in str(found.reason)


def test_a_board_that_is_in_no_table_is_refused_with_those_that_are() -> None:
    power = Power(sysfs=str(tree("jetson-tx2")), board="jetson-tx3")
    with pytest.raises(ConfigError, match=r"^power\.board: .*jetson-tx2"):
        finding.check_board(power)
    found = finding.find_rails(power)
    found.close()
    assert found.total == ()
    assert "jetson-tx3" in str(found.reason)


def test_without_any_sensor_the_reason_says_what_was_looked_for(tmp_path: Path) -> None:
    found = find(tmp_path)
    assert (found.rails, found.total) == ((), ())
    assert "INA3221, INA238 or RAPL" in str(found.reason)
    assert str(tmp_path) in str(found.reason)


def test_a_sensor_that_is_not_asked_for_is_not_looked_at() -> None:
    assert [rail.name for rail in find(tree("jetson-agx-thor"), sensor="ina238").rails] == ["VIN"]
    assert "VIN" not in [rail.name for rail in find(tree("jetson-agx-thor"), sensor="ina3221").rails]
    none = find(tree("jetson-agx-thor"), sensor="none")
    assert none.rails == ()
    assert '"none"' in str(none.reason)


def test_what_a_sensor_knows_of_its_rails_makes_the_total_and_its_parts_are_not_added(tmp_path: Path) -> None:
    with moving(zone(tmp_path, "intel-rapl:0", "package-0"), zone(tmp_path, "intel-rapl:1", "psys")):
        assert find(tmp_path).total_of == ("package-0",)
        assert find(tmp_path, sensor="rapl", total=["psys"]).total_of == ("psys",)
        assert "package-0 is a part of psys" in str(find(tmp_path, total=["psys", "package-0"]).reason)


def test_a_rail_that_fails_now_is_dropped_and_takes_the_total_with_it(tmp_path: Path) -> None:
    sysfs = copied("jetson-nano", tmp_path)
    found = finding.find_rails(Power(sysfs=str(sysfs)))
    file = sysfs / "devices/7000c400.i2c/i2c-6/6-0040/iio:device3/in_power0_input"
    found.close()  # so that the file is opened again
    replace(file, ALWAYS_EIO)
    taken = finding.read_power(found)
    found.close()
    assert [rail.name for rail in taken.rails] == ["POM_5V_GPU", "POM_5V_CPU"]
    assert (taken.total_w, taken.total_of) == (None, [])
    assert [each.name for each in taken.dropped] == ["POM_5V_IN", "total"]
    assert "Input/output error" in taken.dropped[0].reason
    assert "POM_5V_IN" in taken.dropped[1].reason


def board_of(root: Path, compatible: bytes) -> Path:
    folder = root / "firmware/devicetree/base"
    folder.mkdir(parents=True)
    (folder / "compatible").write_bytes(compatible)
    return root


@pytest.mark.parametrize(
    ("compatible", "name"),
    [
        (b"nvidia,p2597-0000+p3489-0888\0nvidia,tegra186\0", "jetson-tx2"),
        (b"nvidia,p3509-0000+p3668-0001\0nvidia,tegra194\0", "jetson-xavier-nx"),
        (b"nvidia,p3768-0000+p3767-0000-super\0nvidia,p3767-0000\0nvidia,tegra234\0", "jetson-orin-nano"),
    ],
)
def test_a_module_on_any_carrier_is_recognised(tmp_path: Path, compatible: bytes, name: str) -> None:
    found = recognise_board(board_of(tmp_path, compatible))
    assert found.name == name


@pytest.mark.parametrize(
    "compatible",
    [b"nvidia,p3509-0000+p3636-0001\0nvidia,tegra186\0", b"raspberrypi,4-model-b\0brcm,bcm2711\0", b"\xff" * 5000],
)
def test_a_board_of_no_table_is_not_recognised(tmp_path: Path, compatible: bytes) -> None:
    assert recognise_board(board_of(tmp_path, compatible)) is None
