"""The Debian package as built, later versions of it, and what is installed with it in a machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cv2

import jetsel
from jetsel.cli.drawn import pictures
from tests.booted.machine import Machine

DIST = Path(__file__).parents[2] / "dist"
MEMBER, STRANGER = "mara", "otto"  # in the group jetsel, and not
PICTURE = "/srv/pictures/an-orange-on-a-table.jpg"


class Package(NamedTuple):
    """The two packages of one version."""

    main: Path
    calibrate: Path


def built(architecture: str | None = None) -> Package | None:
    """Return what `make deb` left in dist/, or None where it was not run for this version.

    architecture: None for this machine's.
    """
    if architecture is None:
        done = subprocess.run(("dpkg", "--print-architecture"), capture_output=True, text=True, check=True)
        architecture = done.stdout.strip()
    end = f"_{jetsel.__version__}_{architecture}.deb"
    found = Package(DIST / f"jetsel{end}", DIST / f"jetsel-calibrate{end}")
    return found if all(path.exists() for path in found) else None


def install(machine: Machine, *packages: Path) -> str:
    """Install packages with dpkg, which fetches nothing and here need not outlive a power cut; return what was said."""
    return machine.run("dpkg", "--force-unsafe-io", "--install", *put(machine.root, *packages))


def put(root: Path, *packages: Path) -> list[str]:
    """Copy packages into a machine; return their paths there."""
    folder = root / "var/cache/apt/archives"
    for package in packages:
        subprocess.run(("cp", "--reflink=auto", str(package), str(folder)), check=True)
    return [f"/var/cache/apt/archives/{package.name}" for package in packages]


def people(machine: Machine) -> None:
    """Add a member of the group jetsel and a stranger, and pictures that both may read."""
    machine.run("useradd", "--groups", "jetsel", MEMBER)
    machine.run("useradd", STRANGER)
    hang_pictures(machine.root)


def hang_pictures(root: Path) -> None:
    """Write pictures into a machine."""
    for name, picture in pictures().items():
        place = root / f"srv/pictures/{name.replace(' ', '-')}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(cv2.imencode(".jpg", picture)[1].tobytes())


def later(package: Path, version: str, folder: Path, change: Callable[[Path], object] = Path.exists) -> Path:
    """Return the same package as another version, in a folder, after a change to its unpacked tree."""
    made = folder / package.name.replace(f"_{jetsel.__version__}_", f"_{version}_")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        root = Path(scratch) / "root"
        subprocess.run(("dpkg-deb", "--raw-extract", str(package), str(root)), check=True)
        control = root / "DEBIAN/control"
        control.write_text(control.read_text().replace(f"Version: {jetsel.__version__}\n", f"Version: {version}\n"))
        change(root)
        subprocess.run(("dpkg-deb", "-Znone", "--build", str(root), str(made)), check=True, capture_output=True)
        shutil.rmtree(root)
    return made
