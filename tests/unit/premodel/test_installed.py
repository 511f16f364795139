"""The owner's calibrations: what is in use is always whole, and the way back leads to what was in use before."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import Calibration, save
from jetsel.premodel.installed import Installed, before, current, history, install, rollback, shipped


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of one family, `animals`, in the folder tmp_path."""
    return tmp_path / "animals"


def put(calibration: Calibration, folder: Path, created: str) -> Installed:
    return install(msgspec.structs.replace(calibration, created=created), folder, "animals")


def used(folder: Path) -> tuple[int, str] | None:
    found = current(folder, "animals")
    return None if found is None else (found.number, found.usable().created)


def names(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir())


def test_nothing_is_in_use_before_the_first_installation(tmp_path: Path) -> None:
    assert current(tmp_path, "animals") is None
    assert history(tmp_path, "animals") == []
    for going_back in (before, rollback):
        with pytest.raises(CalibrationError, match="no calibration of the owner's is in use"):
            going_back(tmp_path / "nowhere", "animals")


def test_each_installation_gets_the_next_number_and_is_in_use(
    calibration: Calibration, tmp_path: Path, place: Path
) -> None:
    first = install(calibration, tmp_path / "deeper", "animals", "<!doctype html><p>gains</p>")
    assert first.report is not None
    assert first.report.read_text() == "<!doctype html><p>gains</p>"
    assert [put(calibration, tmp_path, created).number for created in ("May", "June")] == [1, 2]
    assert used(tmp_path) == (2, "June")
    assert names(place) == ["1", "2", "current"]
    assert str((place / "current").readlink()) == "2"
    assert [(one.number, one.is_current, one.called, one.report) for one in history(tmp_path, "animals")] == [
        (2, True, "number 2, of June", None),
        (1, False, "number 1, of May", None),
    ]
    seen = current(tmp_path / "deeper", "animals")
    assert seen is not None
    assert seen.report == first.report


def test_the_way_back_leads_to_what_was_in_use_before_and_then_to_what_was_shipped(
    calibration: Calibration, tmp_path: Path
) -> None:
    for created in ("April", "May", "June"):
        put(calibration, tmp_path, created)
    back = rollback(tmp_path, "animals")
    assert back is not None
    assert back.called == "number 2, of May"
    assert used(tmp_path) == (2, "May")
    put(calibration, tmp_path, "July")  # number 4, while 2 was in use: 3 was left for a reason
    assert before(tmp_path, "animals") == 2
    assert [rollback(tmp_path, "animals") is not None for _ in range(3)] == [True, True, False]
    assert used(tmp_path) is None
    assert [one.number for one in history(tmp_path, "animals")] == [4, 3, 2, 1], "nothing was deleted"
    with pytest.raises(CalibrationError, match="no calibration of the owner's is in use"):
        rollback(tmp_path, "animals")


def test_any_number_can_be_gone_to_also_forward(calibration: Calibration, tmp_path: Path) -> None:
    for created in ("April", "May", "June"):
        put(calibration, tmp_path, created)
    for number in (1, 3, 2):
        rollback(tmp_path, "animals", number)
        assert used(tmp_path) == (number, ["April", "May", "June"][number - 1])
    assert rollback(tmp_path, "animals", 0) is None
    assert used(tmp_path) is None
    with pytest.raises(CalibrationError, match="in use already for family animals: shipped with the models"):
        rollback(tmp_path, "animals", 0)
    with pytest.raises(CalibrationError, match=r"number 9 cannot be used: .*9/manifest.json: no such file"):
        rollback(tmp_path, "animals", 9)
    assert used(tmp_path) is None


def test_what_is_damaged_is_listed_with_its_reason_and_never_gone_back_to(
    calibration: Calibration, tmp_path: Path, place: Path
) -> None:
    for created in ("April", "May"):
        put(calibration, tmp_path, created)
    (place / "1" / "arrays.npz").write_bytes(b"")
    assert "not the arrays" in str(history(tmp_path, "animals")[1].reason)
    with pytest.raises(CalibrationError, match=r"number 1 cannot be used: .*Nothing has changed; name another"):
        rollback(tmp_path, "animals")
    assert used(tmp_path) == (2, "May")
    shutil.rmtree(place / "2")
    gone = current(tmp_path, "animals")
    assert gone is not None
    assert gone.calibration is None
    assert "no such file" in str(gone.reason)
    with pytest.raises(CalibrationError, match="no such file"):
        gone.usable()
    assert [one.number for one in history(tmp_path, "animals")] == [2, 1], "the one in use is listed, gone or not"
    assert put(calibration, tmp_path, "June").number == 3, "no number is ever given twice"


@pytest.mark.parametrize(("target", "said"), [("../../elsewhere", "not to a number"), (None, "is no link")])
def test_a_link_that_is_none_of_ours_is_not_followed(
    calibration: Calibration, tmp_path: Path, place: Path, target: str | None, said: str
) -> None:
    put(calibration, tmp_path, "May")
    (place / "current").unlink()
    if target is None:
        (place / "current").mkdir()
    else:
        (place / "current").symlink_to(target)
    for reading in (current, history, rollback):
        with pytest.raises(CalibrationError, match=rf"{said}.*; remove it"):
            reading(tmp_path, "animals")


@pytest.mark.parametrize("family", ["..", "a/b", "", ".hidden", "Animals"])
def test_no_name_of_a_family_leads_out_of_the_folder(calibration: Calibration, tmp_path: Path, family: str) -> None:
    with pytest.raises(CalibrationError, match="is no name of a family"):
        install(msgspec.structs.replace(calibration, family=family or "x"), tmp_path, family)
    assert list(tmp_path.iterdir()) == []


def test_a_calibration_of_another_family_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="of family animals, not plants: calibrate plants"):
        install(calibration, tmp_path, "plants")
    assert list(tmp_path.iterdir()) == []


def test_the_last_ten_are_kept_and_the_one_that_would_be_gone_back_to(
    calibration: Calibration, tmp_path: Path, place: Path
) -> None:
    for number in range(1, 13):
        put(calibration, tmp_path, str(number))
    assert [one.number for one in history(tmp_path, "animals")] == list(range(12, 2, -1))
    rollback(tmp_path, "animals", 3)
    put(calibration, tmp_path, "13")
    put(calibration, tmp_path, "14")
    assert [one.number for one in history(tmp_path, "animals")] == list(range(14, 4, -1))
    rollback(tmp_path, "animals", 5)
    put(calibration, tmp_path, "15")
    assert [one.number for one in history(tmp_path, "animals")] == list(range(15, 4, -1)), "5 is the way back from 15"
    (place / "15" / "before").write_bytes(b"nonsense")
    assert before(tmp_path, "animals") == 14, "the next lower one, where what was before is not known"


def test_what_came_with_the_models_has_the_same_shape(calibration: Calibration, tmp_path: Path) -> None:
    assert shipped(tmp_path / "calibration") is None
    save(calibration, tmp_path / "calibration")
    found = shipped(tmp_path / "calibration")
    assert found is not None
    assert (found.number, found.called) == (0, "shipped with the models, of 2026-11-20")
    (tmp_path / "calibration" / "manifest.json").write_bytes(b"{}")
    found = shipped(tmp_path / "calibration")
    assert found is not None
    assert "not a calibration's manifest" in str(found.reason)


# Installs again and again in a child that is killed at a random moment, twenty times; prints for each kill whether the
# one in use is whole, then whether every one of the history is, and what is left after the next installation.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import msgspec
from jetsel.premodel.installed import current, history, install

folder = Path(sys.argv[1])
whole = current(folder, "animals").usable()
began = time.monotonic()
install(whole, folder, "animals", "report")
took_s = time.monotonic() - began
for kill in range(20):
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            install(msgspec.structs.replace(whole, created=f"{kill}"), folder, "animals", "report")
            os.write(done, b".")
    os.read(ready, 1)
    time.sleep(random.uniform(0, 2 * took_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = current(folder, "animals")
    listed = history(folder, "animals")
    left = [entry.name for entry in (folder / "animals").iterdir() if entry.name.startswith(".")]
    install(whole, folder, "animals")
    after = [entry.name for entry in (folder / "animals").iterdir() if entry.name.startswith(".")]
    print(found.usable().created == f"{kill}", all(one.reason is None for one in listed), len(left), len(after))
"""


def test_killed_at_twenty_random_moments_the_one_in_use_is_whole(calibration: Calibration, tmp_path: Path) -> None:
    install(calibration, tmp_path, "animals")
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    kills = [line.split() for line in done.stdout.splitlines()]
    assert len(kills) == 20
    assert all(kill[:2] == ["True", "True"] and kill[3] == "0" for kill in kills), done.stdout


class Fault:
    """Makes the n-th operation on files fail, through the interpreter's own audit hook; 0 for none."""

    left = 0
    thread = threading.get_ident()

    def __call__(self, event: str, _: tuple[Any, ...]) -> None:
        if self.left > 0 and threading.get_ident() == self.thread and event.startswith(("open", "os.", "fcntl.")):
            self.left -= 1
            if self.left == 0:
                raise OSError(28, "No space left on device")


@pytest.fixture(scope="module")
def fault() -> Fault:
    hook = Fault()
    sys.addaudithook(hook)  # it cannot be removed again; without a fault it does nothing
    return hook


def test_a_fault_at_any_step_changes_nothing_or_installs_it_whole(
    calibration: Calibration, tmp_path: Path, fault: Fault
) -> None:
    put(calibration, tmp_path, "old")
    refusals = []
    for step in range(1, 1000):
        fault.left = step
        try:
            put(calibration, tmp_path, "new")
        except CalibrationError as refusal:
            refusals.append(str(refusal))
            assert used(tmp_path) == (1, "old"), step
            assert [one.number for one in history(tmp_path, "animals")] == [1]
        else:
            break  # past the last step that can make it fail
    fault.left = 0
    assert len(refusals) > 8
    assert all("No space left on device" in refusal for refusal in refusals)
    assert sum("free some space there" in refusal for refusal in refusals) > 8
    assert used(tmp_path) == (2, "new")
    assert names(tmp_path / "animals") == ["1", "2", "current"]


def test_a_fault_at_any_step_of_the_way_back_changes_nothing_or_leads_back(
    calibration: Calibration, tmp_path: Path, fault: Fault
) -> None:
    for created in ("old", "new"):
        put(calibration, tmp_path, created)
    refusals = 0
    for step in range(1, 1000):
        fault.left = step
        try:
            rollback(tmp_path, "animals")
        except CalibrationError:
            refusals += 1
            assert used(tmp_path) == (2, "new"), step
        else:
            break
    fault.left = 0
    assert refusals > 3
    assert used(tmp_path) == (1, "old")
    assert names(tmp_path / "animals") == ["1", "2", "current"]


def test_installers_take_turns_and_a_reader_always_finds_a_whole_one(calibration: Calibration, tmp_path: Path) -> None:
    put(calibration, tmp_path, "0")
    faults: list[BaseException] = []

    def keep_installing() -> None:
        try:
            for number in range(15):
                put(calibration, tmp_path, str(number))
        except BaseException as error:
            faults.append(error)

    installers = [threading.Thread(target=keep_installing) for _ in range(2)]
    for installer in installers:
        installer.start()
    while any(installer.is_alive() for installer in installers):
        assert used(tmp_path) is not None
    assert not faults
    assert [one.number for one in history(tmp_path, "animals")] == list(range(31, 21, -1))
