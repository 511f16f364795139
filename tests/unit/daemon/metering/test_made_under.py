"""What a calibration keeps of the board it was made on, and what becomes of it when it is read again."""

from __future__ import annotations

import json
from pathlib import Path

from jetsel.daemon.metering.made_under import kept, restored
from jetsel.policies.coding import read, save
from jetsel.power.machine import Machine, differences
from tests.unit.daemon.families import calibration_of, put_family
from tests.unit.power.machines import tx2


def test_what_is_kept_says_after_json_how_the_board_differs(tmp_path: Path) -> None:
    machine = Machine(tx2(tmp_path))
    facts = machine.facts()
    plain = json.loads(json.dumps(kept(facts)))
    again = restored(plain)
    assert again is not None
    assert differences(again, facts) == []
    plain["power_mode"]["value"] = "7 SLOW"
    other = restored(plain)
    assert other is not None
    assert differences(other, facts) == [f"power mode changed from '7 SLOW' to {facts.power_mode.value!r}"]


def test_nothing_is_known_of_a_calibration_that_keeps_nothing_or_what_cannot_be_understood() -> None:
    assert restored({}) is None
    assert restored({"board": 3}) is None


def test_it_is_saved_and_loaded_with_the_calibration(tmp_path: Path) -> None:
    (tmp_path / "board").mkdir()
    machine = kept(Machine(tx2(tmp_path / "board")).facts())
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    save(calibration_of(folder, "cats", machine=machine), tmp_path / "with")
    save(calibration_of(folder, "cats"), tmp_path / "without")
    assert read(tmp_path / "with").machine == machine
    assert read(tmp_path / "without").machine == {}
