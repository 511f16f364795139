"""Distributions with systemd and a Python that will do, each made once by debootstrap and kept; machines get copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.booted import ubuntu

NEEDED = {"systemd-nspawn": "systemd-container", "debootstrap": "debootstrap", "dpkg-deb": "dpkg"}
MAKE_S = 600.0


class MissingError(Exception):
    """What this machine lacks, and how to get it."""


class Release(NamedTuple):
    """systemd: its version. python: the newest, which stands at `python_path`, and its libraries under `prefix`."""

    suite: str
    mirror: str
    systemd: int
    packages: str
    python: str
    python_path: str
    prefix: str

    @property
    def recipe(self) -> str:
        """What the kept one is made from."""
        return f"{self.suite} {self.packages}" + (ubuntu.RECIPE if self is UBUNTU_18 else "")


_PLAIN = "systemd,systemd-sysv,dbus,udev,python3,libstdc++6"
DEBIAN_12 = Release("bookworm", "http://deb.debian.org/debian", 252, _PLAIN, "3.11", "usr/bin/python3.11", "/usr")
# As on a board with JetPack 4: Python 3.6 is the system's, and another one stands beside it.
UBUNTU_18 = Release(
    "bionic",
    "http://archive.ubuntu.com/ubuntu",
    237,
    f"{_PLAIN},setpriv,{ubuntu.TO_BUILD}",
    ubuntu.PYTHON,
    ubuntu.ON_THE_PATH,
    ubuntu.PREFIX,
)
RELEASES = {release.suite: release for release in (DEBIAN_12, UBUNTU_18)}


def missing() -> str | None:
    """Return what this machine needs and how to get it, or None where all is there."""
    if os.geteuid() != 0:
        return "a container is booted as root: run make test-booted as root"
    lacks = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    return f"needs Debian packages: apt-get install {' '.join(lacks)}" if lacks else None


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder where they are kept: outside of the tree, as `make clean` need not fetch them again."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jetsel/booted"


def base(release: Release = DEBIAN_12, architecture: str | None = None) -> Path:
    """Return a folder with the release, made where it is not there: of Debian, 90 MB are fetched and 320 MB kept.

    architecture: None for this machine's; another one's programs must run here. Raises MissingError, with what
    failed.
    """
    recipe = hashlib.sha256(release.recipe.encode()).hexdigest()[:8]
    made = cache() / "-".join((release.suite, *filter(None, (architecture,)), recipe))
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        root = Path(scratch) / "root"
        options = [f"--include={release.packages}"] + ([] if architecture is None else [f"--arch={architecture}"])
        try:
            if release is UBUNTU_18:
                options += [f"--keyring={ubuntu.keyring(Path(scratch))}", "--components=main,universe"]
            run("debootstrap", "--variant=minbase", *options, release.suite, str(root), release.mirror)
            if release is UBUNTU_18:
                ubuntu.add_python(root, run)
        except OSError as error:
            raise MissingError(f"{release.suite} cannot be made: {error}") from None
        root.rename(made)
    return made


def run(*command: str) -> None:
    """Run a command that must succeed; raises MissingError with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_S)
    if done.returncode != 0:
        raise MissingError(f"{' '.join(command)} failed ({done.returncode}): {(done.stdout + done.stderr)[-2000:]}")


def copy(folder: Path, release: Release = DEBIAN_12, architecture: str | None = None) -> Path:
    """Return a copy of the release at a folder that is not there yet."""
    command = ("cp", "-a", "--reflink=auto", str(base(release, architecture)), str(folder))
    subprocess.run(command, check=True, timeout=120)
    return folder
