"""A Debian with systemd and Python, made once by debootstrap and kept; each machine gets a copy."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SUITE = "bookworm"
PYTHON = "3.11"  # Debian's own in that release
PACKAGES = "systemd,systemd-sysv,dbus,udev,python3,libstdc++6"
NEEDED = {"systemd-nspawn": "systemd-container", "debootstrap": "debootstrap", "dpkg-deb": "dpkg"}
MIRROR = "http://deb.debian.org/debian"
MAKE_S = 600.0


class MissingError(Exception):
    """What this machine lacks, and how to get it."""


def missing() -> str | None:
    """Return what this machine needs and how to get it, or None where all is there."""
    if os.geteuid() != 0:
        return "a container is booted as root: run make test-booted as root"
    lacks = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    return f"needs Debian packages: apt-get install {' '.join(lacks)}" if lacks else None


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder where the Debian is kept: outside of the tree, as `make clean` need not fetch it again."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jetsel/booted"


def base(architecture: str | None = None) -> Path:
    """Return a folder with the Debian, made where it is not there: about 90 MB are fetched, 320 MB kept.

    architecture: None for this machine's; another one's programs must run here. Raises MissingError, with what
    debootstrap said.
    """
    recipe = hashlib.sha256(f"{SUITE} {PACKAGES}".encode()).hexdigest()[:8]
    made = cache() / "-".join((SUITE, *filter(None, (architecture,)), recipe))
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        root = Path(scratch) / "root"
        for_other = () if architecture is None else (f"--arch={architecture}",)
        command = ("debootstrap", *for_other, "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), MIRROR)
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_S)
        if done.returncode != 0:
            raise MissingError(f"{' '.join(command)} failed ({done.returncode}): {(done.stdout + done.stderr)[-2000:]}")
        root.rename(made)
    return made


def copy(folder: Path, architecture: str | None = None) -> Path:
    """Return a copy of the Debian at a folder that is not there yet."""
    subprocess.run(("cp", "-a", "--reflink=auto", str(base(architecture)), str(folder)), check=True, timeout=120)
    return folder
