"""What is said of a device, by the storage's clock and not by its own."""

from __future__ import annotations

from pathlib import Path

from jetsel.addons.fleet.documents import Entry, Plan, PlannedFamily
from jetsel.addons.fleet.manager.devices import read_devices
from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.manager.status import DeviceStatus, Written, statuses
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import Trial, Usage
from tests.unit.addons.fleet.managed import told, upload

FAMILIES = (PlannedFamily(bundle=Entry(family="pets", version=1, sha256="1" * 64), models=("small",)),)


def stands(storage: Storage, *lines: Usage, late_s: float = 0.0, planned: int = 0) -> DeviceStatus:
    """How a device stands that told these lines, so long after its upload; its plan was written 600 s before."""
    upload(storage, *lines)
    table = Metadata(storage)
    table.gather()
    devices = read_devices(table)
    (device,) = devices.values()
    plan = Plan(device="a", serial=planned or 1, families=FAMILIES)
    plans = {"a": Written(plan, device.uploaded_s - 600)} if planned else {}
    (found,) = statuses(devices, plans, device.uploaded_s + late_s)
    return found


def at(storage: Storage, when_s: float, **changes: object) -> list[Usage]:
    """Two lines, the newer of this time by the device's clock."""
    return [told("a", 1, at_s=when_s - 60), told("a", 2, at_s=when_s, **changes)]


def now_s(folder: Path) -> float:
    """The storage's clock."""
    (folder / "probe").write_bytes(b"")
    return (folder / "probe").stat().st_mtime


def test_each_fault_is_named(tmp_path: Path) -> None:
    trial = Trial(serial=3, outcome="rolled-back", reason="slower")
    lines = [
        told("a", 2, at_s=0),
        told("a", 4, at_s=120 + now_s(tmp_path), trial=trial, daemon="away", dropped=7),
    ]
    found = stands(Storage(str(tmp_path)), lines[0], lines[1], planned=5)
    assert found.missing == 2
    said = "; ".join(found.faults)
    for words in ("rolled-back: slower", "away", "2 lines are missing, s-1", "7 lines were lost"):
        assert words in said


def test_silence_a_wrong_clock_and_a_plan_that_nobody_took(tmp_path: Path) -> None:
    lines = at(Storage(str(tmp_path)), now_s(tmp_path) + 365 * 86400)
    found = stands(Storage(str(tmp_path)), *lines, late_s=600.0, planned=5)
    assert found.clock_s is not None
    said = "; ".join(found.faults)
    for words in ("10.0 periods", "365.0 days ahead", "plan 5 was not installed"):
        assert words in said
    plan = Plan(device="never", serial=1, families=FAMILIES)
    (silent,) = statuses({}, {"never": Written(plan, 0.0)}, 1.0)
    assert "never reported" in silent.faults[0]
