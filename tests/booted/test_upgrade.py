"""An upgrade that breaks off, and one that goes through under load."""

from __future__ import annotations

from pathlib import Path

import jetsel
from tests.booted.machine import Machine
from tests.booted.operator import clients, main_pid, started_clean
from tests.booted.package import PICTURE, Package, install, later, put

BROKEN, NEXT = f"{jetsel.__version__}+broken", f"{jetsel.__version__}+next"


def test_an_upgrade_that_breaks_off_leaves_the_old_environment_at_work(
    machine: Machine, package: Package, tmp_path: Path
) -> None:
    before, environment = main_pid(machine), machine.run("readlink", "/opt/jetsel/venv")
    broken = later(package.main, BROKEN, tmp_path, truncate_a_wheel)
    failed = machine.try_("dpkg", "--force-unsafe-io", "--install", *put(machine.root, broken))
    assert failed.returncode != 0
    assert main_pid(machine) == before
    assert machine.run("readlink", "/opt/jetsel/venv") == environment
    started_clean(machine)
    machine.run("jetsel", "classify", PICTURE)

    with clients(machine) as ended:  # and the next one goes through, with nobody refused
        install(machine, later(package.main, NEXT, tmp_path))
    assert set(ended) == {"answered"}
    assert machine.run("readlink", "/opt/jetsel/venv") != environment
    assert len(machine.run("ls", "/opt/jetsel/environments").split()) == 1
    assert machine.run("dpkg-query", "-W", "-f", "${Status} ${Version}", "jetsel") == f"install ok installed {NEXT}"


def truncate_a_wheel(root: Path) -> None:
    for wheel in (root / "opt/jetsel/wheels").glob("onnxruntime-*.whl"):
        content = wheel.read_bytes()
        wheel.unlink()
        wheel.write_bytes(content[: len(content) // 2])
