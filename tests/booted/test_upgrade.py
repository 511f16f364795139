"""The package: upgrades that break off and that go through, and a device without a Python that will do."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import jetsel
from tests.booted.machine import Machine
from tests.booted.operator import GATEWAY, SERVICE, SOCKET, clients, main_pid, started_clean
from tests.booted.package import PICTURE, Package, install, later, put
from tests.booted.release import Release, copy

BROKEN, NEXT = f"{jetsel.__version__}+broken", f"{jetsel.__version__}+next"
HIDDEN = "usr/bin/hidden"
KEPT = ("/var/lib/jetsel/calibrations/kept", "/etc/jetsel/jetsel.toml")


@pytest.fixture
def root(release: Release, tmp_path: Path) -> Iterator[Path]:
    """A release that is not booted, and has no Python that will do."""
    folder = copy(tmp_path / "root", release)
    (folder / release.python_path).rename(folder / HIDDEN)
    yield folder
    subprocess.run(("rm", "-rf", str(folder)), check=True)


def test_an_upgrade_that_breaks_off_leaves_the_old_environment_at_work(
    machine: Machine, package: Package, tmp_path: Path
) -> None:
    before, environment = main_pid(machine), machine.run("readlink", "/opt/jetsel/venv")
    broken = later(package.main, BROKEN, tmp_path, truncate_a_wheel)
    failed = machine.try_("dpkg", "--force-unsafe-io", "--install", put(machine.root, broken))
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


def test_a_device_gets_the_package_then_a_python_and_loses_the_package_but_not_its_data(
    root: Path, package: Package, release: Release
) -> None:
    command = ("chroot", str(root), "dpkg", "--force-unsafe-io", "--install", put(root, package.main))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)  # as an image's builder does
    assert done.returncode == 0, done.stderr
    assert "JETSEL_PYTHON=" in done.stderr
    assert "dpkg-reconfigure jetsel" in done.stderr
    with Machine(root) as machine:
        assert machine.show(SERVICE, "ActiveState") == "inactive"
        assert machine.try_("systemctl", "is-enabled", SERVICE).stdout.strip() == "disabled"

        python = f"/opt/python/bin/python{release.python}"  # beside the system's, as on a board whose own is too old
        machine.run("mkdir", "-p", "/opt/python/bin")
        machine.run("cp", f"/{HIDDEN}", python)
        # One that was built for another place finds its library by itself, but not by this name.
        machine.run("ln", "-s", f"{release.prefix}/lib", "/opt/python/lib")
        machine.write("/etc/default/jetsel", f"JETSEL_PYTHON={python}\n")
        (ssl,) = machine.run("find", release.prefix, "-name", "_ssl.cpython-*.so").split()
        machine.run("mv", ssl, "/srv/ssl")  # a Python that was built without OpenSSL will do for all but the gateway
        told = machine.try_("dpkg-reconfigure", "jetsel")
        assert (told.returncode, "gateway will not run" in told.stderr) == (0, True), told
        assert "built without OpenSSL" in machine.try_("jetsel", "gateway").stderr
        assert machine.show(SERVICE, "ActiveState") == "active"
        machine.run("mv", "/srv/ssl", ssl)
        assert "gateway" not in machine.try_("dpkg-reconfigure", "jetsel").stderr
        assert machine.show(SERVICE, "ActiveState") == "active"
        assert machine.run("systemctl", "is-enabled", SERVICE, SOCKET).split() == ["enabled", "enabled"]

        for path in KEPT:
            machine.write(path, "")
        machine.run("systemctl", "enable", "--now", "jetsel-calibrate@site.timer", GATEWAY)
        assert machine.show(GATEWAY, "ActiveState") == "active"
        machine.run("dpkg", "--remove", "jetsel")
        for unit in (SERVICE, GATEWAY):
            assert machine.show(unit, "ActiveState") == "inactive"
        for path in KEPT:
            assert machine.run("ls", path)
        for path in ("/opt/jetsel", "/usr/bin/jetsel"):
            assert machine.try_("ls", path).returncode != 0

        machine.run("dpkg", "--purge", "jetsel")
        folders = ("/var/lib/jetsel", "/var/lib/jetsel-agent", "/var/lib/jetsel-watch", "/etc/jetsel", "/run/jetsel")
        for path in (*folders, "/etc/default/jetsel"):
            assert machine.try_("ls", path).returncode != 0, path
        left = machine.run("find", "/etc/systemd", "/var/lib/systemd", "-name", "*jetsel*").split()
        assert left == [], "timers that were enabled, and when they ran"
        assert machine.try_("systemctl", "list-unit-files", "--no-legend", "jetsel*").stdout == ""
        assert machine.run("getent", "passwd", "jetsel", "jetsel-agent", "jetsel-gateway")


def test_install_service_does_without_the_package_what_the_package_did(machine: Machine, package: Package) -> None:
    machine.run("cp", "-a", "/opt/jetsel", "/opt/kept")  # a program without its package
    machine.run("dpkg", "--purge", "jetsel-calibrate", "jetsel")
    machine.run("mv", "/opt/kept", "/opt/jetsel")
    install_service = ("/opt/jetsel/venv/bin/jetsel", "install-service")
    assert "write " in machine.run(*install_service, "--dry-run")
    assert machine.try_("systemctl", "cat", SERVICE).returncode != 0, "a dry run changes nothing"
    told = machine.run(*install_service)
    assert " is ready" in told
    assert machine.run("systemctl", "is-enabled", SERVICE, SOCKET).split() == ["enabled", "enabled"]
    machine.run("systemctl", "enable", "--now", GATEWAY)
    before, gateway = main_pid(machine), machine.show(GATEWAY, "MainPID")
    again = machine.run(*install_service)
    assert "write " not in again
    assert main_pid(machine) not in (0, before)
    assert machine.show(GATEWAY, "MainPID") not in ("0", gateway)
    machine.run(*install_service, "--remove")
    for unit in (SERVICE, GATEWAY):
        assert machine.show(unit, "ActiveState") == "inactive"
    assert machine.run("find", "/etc/systemd", "-name", "jetsel*").split() == []

    machine.run("rm", "-r", "/opt/jetsel")  # and the next test finds the package again
    install(machine, package.main)
