"""The package on a device without a Python that will do, then with one, then removed and purged."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.machine import Machine
from tests.booted.operator import SERVICE, SOCKET
from tests.booted.package import Package, put
from tests.booted.release import Release, copy

HIDDEN = "usr/bin/hidden"
KEPT = ("/var/lib/jetsel/calibrations/kept", "/etc/jetsel/jetsel.toml")


@pytest.fixture
def root(release: Release, tmp_path: Path) -> Iterator[Path]:
    """A release that is not booted, and has no Python that will do."""
    folder = copy(tmp_path / "root", release)
    (folder / release.python_path).rename(folder / HIDDEN)
    yield folder
    subprocess.run(("rm", "-rf", str(folder)), check=True)


def test_a_device_gets_the_package_then_a_python_and_loses_the_package_but_not_its_data(
    root: Path, package: Package, release: Release
) -> None:
    told = installed_without_systemd(root, put(root, package.main))
    assert "JETSEL_PYTHON=" in told
    assert "dpkg-reconfigure jetsel" in told
    with Machine(root) as machine:
        assert machine.show(SERVICE, "ActiveState") == "inactive"
        assert machine.try_("systemctl", "is-enabled", SERVICE).stdout.strip() == "disabled"

        give_a_python(machine, release)
        machine.run("dpkg-reconfigure", "jetsel")
        assert machine.show(SERVICE, "ActiveState") == "active"
        assert machine.run("systemctl", "is-enabled", SERVICE, SOCKET).split() == ["enabled", "enabled"]
        version = machine.run("/opt/jetsel/venv/bin/python", "--version")
        assert version.startswith(f"Python {release.python}.")

        for path in KEPT:
            machine.write(path, "")
        machine.run("systemctl", "enable", "--now", "jetsel-calibrate@site.timer")
        machine.run("dpkg", "--remove", "jetsel")
        assert machine.show(SERVICE, "ActiveState") == "inactive"
        for path in KEPT:
            assert machine.run("ls", path)
        assert machine.try_("ls", "/opt/jetsel").returncode != 0
        assert machine.try_("ls", "/usr/bin/jetsel").returncode != 0

        machine.run("dpkg", "--purge", "jetsel")
        for path in ("/var/lib/jetsel", "/etc/jetsel", "/etc/default/jetsel", "/run/jetsel"):
            assert machine.try_("ls", path).returncode != 0, path
        left = machine.run("find", "/etc/systemd", "/var/lib/systemd", "-name", "*jetsel*").split()
        assert left == [], "timers that were enabled, and when they ran"
        assert machine.try_("systemctl", "list-unit-files", "--no-legend", "jetsel*").stdout == ""
        assert machine.run("id", "jetsel")


def installed_without_systemd(root: Path, packages: list[str]) -> str:
    """Install as an image's builder does, in a chroot; return what was said on standard error."""
    command = ("chroot", str(root), "dpkg", "--force-unsafe-io", "--install", *packages)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


def give_a_python(machine: Machine, release: Release) -> None:
    """Have a Python beside the system's, and name it, as on a board whose own is too old."""
    python = f"/opt/python/bin/python{release.python}"
    machine.run("mkdir", "-p", "/opt/python/bin")
    machine.run("cp", f"/{HIDDEN}", python)
    # One that was built for another place finds its library by itself, but not by this name.
    machine.run("ln", "-s", f"{release.prefix}/lib", "/opt/python/lib")
    machine.write("/etc/default/jetsel", f"JETSEL_PYTHON={python}\n")
