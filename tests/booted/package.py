"""The Debian package as built, later versions of it, and what is installed with it in a machine."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jetsel
from jetsel.cli.drawn import pictures
from tests.booted.machine import Machine
from tests.system.daemons import encoded

DIST = Path(__file__).parents[2] / "dist"
ARCHIVES = "/var/cache/apt/archives"
MEMBER, STRANGER = "mara", "otto"  # in the group jetsel, and not
PICTURE = "/srv/pictures/an-orange-on-a-table.jpg"


class Package(NamedTuple):
    """The two packages of one version."""

    main: Path
    calibrate: Path


def built(architecture: str | None = None) -> Package | None:
    """Return what `make deb` left in dist/, or None where it was not run for this version; None: this machine's."""
    command = ("dpkg", "--print-architecture")
    architecture = architecture or subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    end = f"_{jetsel.__version__}_{architecture}.deb"
    found = Package(DIST / f"jetsel{end}", DIST / f"jetsel-calibrate{end}")
    return found if all(path.exists() for path in found) else None


def install(machine: Machine, package: Path) -> str:
    """Install a package with dpkg, which fetches nothing and here need not outlive a power cut; return what it said."""
    return machine.run("dpkg", "--force-unsafe-io", "--install", put(machine.root, package))


def put(root: Path, package: Path) -> str:
    """Copy a package into a machine; return its path there."""
    subprocess.run(("cp", "--reflink=auto", str(package), f"{root}{ARCHIVES}"), check=True)
    return f"{ARCHIVES}/{package.name}"


def hang_pictures(root: Path) -> None:
    """Write pictures into a machine, which all of its users may read."""
    for name, picture in pictures().items():
        place = root / f"srv/pictures/{name.replace(' ', '-')}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encoded(picture))


def later(package: Path, version: str, folder: Path, change: Callable[[Path], object] = Path.exists) -> Path:
    """Return the same package as another version, in a folder, after a change to its unpacked tree."""
    made, root = folder / f"{version}.deb", folder / version
    subprocess.run(("dpkg-deb", "--raw-extract", str(package), str(root)), check=True)
    control = root / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {jetsel.__version__}\n", f"Version: {version}\n"))
    change(root)
    subprocess.run(("dpkg-deb", "-Znone", "--build", str(root), str(made)), check=True, capture_output=True)
    subprocess.run(("rm", "-rf", str(root)), check=True)
    return made
