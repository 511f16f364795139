"""The tables of boards: complete, and each recognised by what its device tree says."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.power.boards import recognise


def tree(root: Path, compatible: bytes) -> Path:
    folder = root / "firmware/devicetree/base"
    folder.mkdir(parents=True)
    (folder / "compatible").write_bytes(compatible)
    return root


@pytest.mark.parametrize(
    ("compatible", "name"),
    [
        (b"nvidia,p2771-0000\0nvidia,quill\0nvidia,tegra186\0", "jetson-tx2"),
        (b"nvidia,p2597-0000+p3489-0888\0nvidia,tegra186\0", "jetson-tx2"),
        (b"nvidia,p3450-0000\0nvidia,jetson-nano\0nvidia,tegra210\0", "jetson-nano"),
        (b"nvidia,p3509-0000+p3668-0001\0nvidia,tegra194\0", "jetson-xavier-nx"),
        (b"nvidia,p2822-0000+p2888-0004\0nvidia,tegra194\0", "jetson-agx-xavier"),
        (b"nvidia,p3768-0000+p3767-0000-super\0nvidia,p3767-0000\0nvidia,tegra234\0", "jetson-orin-nano"),
        (b"nvidia,p3737-0000+p3701-0008\0nvidia,p3701-0008\0nvidia,tegra234\0", "jetson-agx-orin"),
        (b"nvidia,p4071-0000+p3834-0008\0nvidia,p3834-0008\0nvidia,tegra264\0", "jetson-agx-thor"),
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
