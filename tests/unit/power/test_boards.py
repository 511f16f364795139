"""Boards recognised by what their device trees say, on other carriers than those of the whole trees of test_finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.finding import recognise


def tree(root: Path, compatible: bytes) -> Path:
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
    found = recognise(tree(tmp_path, compatible))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "compatible",
    [b"nvidia,p3509-0000+p3636-0001\0nvidia,tegra186\0", b"raspberrypi,4-model-b\0brcm,bcm2711\0", b"\xff" * 5000],
)
def test_a_board_of_no_table_is_not_recognised(tmp_path: Path, compatible: bytes) -> None:
    assert recognise(tree(tmp_path, compatible)) is None
