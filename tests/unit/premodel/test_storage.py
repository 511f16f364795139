"""The artefact's directory: at no moment is there none that is whole, and nothing else is ever replaced."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import Calibration, load, save
from jetsel.premodel.coding import ARRAYS, MANIFEST


def test_a_damaged_calibration_can_be_replaced(calibration: Calibration, saved: Path) -> None:
    (saved / MANIFEST).write_bytes(b"")
    (saved / ARRAYS).unlink()
    save(calibration, saved)
    assert load(saved).family == "animals"


def test_what_is_no_calibration_is_never_replaced(calibration: Calibration, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(CalibrationError, match=r"holds cat\.jpg, which is no part of a calibration"):
        save(calibration, tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"
    with pytest.raises(CalibrationError, match="no directory"):
        save(calibration, tmp_path / "photos" / "cat.jpg")
    (tmp_path / "empty").mkdir()
    save(calibration, tmp_path / "empty" / "deeper" / "still")
    assert load(tmp_path / "empty" / "deeper" / "still").k == 3


def test_a_link_to_the_directory_stays_a_link(calibration: Calibration, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to("animals")
    save(msgspec.structs.replace(calibration, created="2027-01-01"), tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert load(saved).created == load(tmp_path / "current").created == "2027-01-01"


# Kills a child at every step of a save that the interpreter can see (opening, renaming, removing, locking), and prints
# for each what `load` then finds, what it finds after the next save, and what is left beside it. One line a step.
KILLED = """
import os, shutil, sys
import msgspec
from jetsel.premodel import load, save

parent, target = sys.argv[1], os.path.join(sys.argv[1], "animals")
new = msgspec.structs.replace(load(target), created="new")
last = msgspec.structs.replace(new, created="last")
whole = os.path.join(parent, "..", "whole")
shutil.copytree(target, whole)
left = None

def hook(event, _):
    global left
    if left is not None and event.startswith(("open", "os.", "shutil.", "fcntl.")):
        left -= 1
        if left == 0:
            os._exit(9)

sys.addaudithook(hook)
for step in range(1, 1000):
    child = os.fork()
    if child == 0:
        left = step
        save(new, target)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = load(target).created
    save(last, target)
    print(status, found, load(target).created, *sorted(os.listdir(parent)))
    if status == 0:
        break
    shutil.rmtree(target)
    shutil.copytree(whole, target)
"""


def test_killed_at_any_step_the_old_one_or_the_new_one_is_loaded(calibration: Calibration, tmp_path: Path) -> None:
    save(msgspec.structs.replace(calibration, created="old"), tmp_path / "store" / "animals")
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "store")], capture_output=True, text=True, timeout=120, check=True
    )
    steps = [line.split() for line in child.stdout.splitlines()]
    assert len(steps) > 15
    assert {step[0] for step in steps[:-1]} == {"9"}
    assert steps[-1][0] == "0"
    found = [step[1] for step in steps]
    switch = found.index("new")
    assert found == ["old"] * switch + ["new"] * (len(steps) - switch)
    assert all(step[2:] == ["last", "animals"] for step in steps)


class Fault:
    """Makes the n-th operation on files fail, through the interpreter's own audit hook; -1 for none."""

    left = -1
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


def test_a_fault_at_any_step_leaves_the_old_one_or_installs_the_new_one(
    calibration: Calibration, tmp_path: Path, fault: Fault
) -> None:
    new = msgspec.structs.replace(calibration, created="new")
    reasons = []
    for step in range(1, 1000):
        target = tmp_path / str(step) / "animals"
        save(msgspec.structs.replace(calibration, created="old"), target)
        fault.left = step
        try:
            save(new, target)
        except CalibrationError as refusal:
            reasons.append(str(refusal))
            assert load(target).created == "old"
            assert [entry.name for entry in target.parent.iterdir()] == ["animals"]
        if fault.left > 0:
            break
    fault.left = -1
    assert load(target).created == "new"
    assert len(reasons) > 8
    assert all("No space left on device" in reason for reason in reasons)


def test_a_full_disk_leaves_the_old_one(calibration: Calibration, saved: Path) -> None:
    """The limit on a file's size stands in for the full disk: the write itself fails, half way."""
    points = np.random.default_rng(0).random((4000, 2), dtype=np.float32)
    right = {criterion: np.ones((4000, 3), bool) for criterion in calibration.right}
    large = msgspec.structs.replace(calibration, points=points, right=right)
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, before[1]))
    try:
        with pytest.raises(CalibrationError, match=r"not installed .*; what was installed before stays"):
            save(large, saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(load(saved).points) == 4
    assert [entry.name for entry in saved.parent.iterdir()] == ["animals"]
    save(large, saved)
    assert load(saved).points.tolist() == points.tolist()


def test_a_reader_finds_a_whole_one_while_it_is_replaced(calibration: Calibration, saved: Path) -> None:
    faults: list[Exception] = []

    def replace(start: int) -> None:
        try:
            for i in range(start, start + 40, 2):
                save(msgspec.structs.replace(calibration, created=str(i), because=str(i)), saved)
        except Exception as fault:
            faults.append(fault)

    savers = [threading.Thread(target=replace, args=(start,)) for start in (1000, 1001)]
    for saver in savers:
        saver.start()
    loads = 0
    while any(saver.is_alive() for saver in savers):
        found = load(saved)
        assert found.created == found.because or found.created == calibration.created
        loads += 1
    assert not faults
    assert loads > 0
    assert load(saved).created in ("1038", "1039")
