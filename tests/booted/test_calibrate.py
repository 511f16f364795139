"""The calibration unit, its timer, and the package with its wheels."""

from __future__ import annotations

import cv2
import numpy as np

from tests.booted.machine import Machine
from tests.booted.operator import SERVICE, main_pid
from tests.booted.package import Package, install

FOLDER = "/var/lib/jetsel/photographs/drawn"
UNIT = "jetsel-calibrate@drawn.service"
CLASSES = ("orange", "lemon")
OF_EACH, SIDE_PX, PATCHES = 8, 160, 5


def test_the_unit_recalibrates_on_the_photographs_of_a_folder(machine: Machine) -> None:
    before = main_pid(machine)
    random = np.random.default_rng(7)
    for label in CLASSES:
        for index in range(OF_EACH):
            patches = random.integers(0, 256, (PATCHES, PATCHES, 3), np.uint8)
            picture = cv2.resize(patches, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC)
            machine.write(f"{FOLDER}/{label}/{index}.jpg", cv2.imencode(".jpg", picture)[1].tobytes())
    machine.run("chown", "-R", "jetsel:jetsel", FOLDER)
    machine.run("systemctl", "start", UNIT, timeout_s=400)
    assert machine.show(UNIT, "Result") == "success"
    assert machine.show(UNIT, "ExecMainStatus") == "0"
    assert main_pid(machine) == before
    assert machine.show(SERVICE, "ActiveState") == "active"


def test_the_timer_of_a_folder_waits_for_the_night(machine: Machine) -> None:
    machine.run("systemctl", "enable", "--now", "jetsel-calibrate@drawn.timer")
    try:
        assert "jetsel-calibrate@drawn.service" in machine.run("systemctl", "list-timers", "--no-legend")
    finally:
        machine.run("systemctl", "disable", "--now", "jetsel-calibrate@drawn.timer")


def test_the_second_package_adds_its_wheels_to_the_environment(machine: Machine, package: Package) -> None:
    python = "/opt/jetsel/venv/bin/python"
    assert machine.try_(python, "-c", "import sklearn").returncode != 0
    install(machine, package.calibrate)
    machine.run(python, "-c", "import sklearn")
    assert machine.show(SERVICE, "ActiveState") == "active"
