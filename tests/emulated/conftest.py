"""A Debian of arm64 whose programs QEMU runs one by one, with the package installed."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.package import Package, built, hang_pictures, put
from tests.booted.release import MissingError, copy, missing
from tests.emulated.shell import Shell

ARCHITECTURE = "arm64"
REGISTERED = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
INSTALL_S = 1200.0


@pytest.fixture(scope="session")
def package() -> Package:
    """The package for arm64, as `make ARCH=arm64 deb` left it."""
    found = built(ARCHITECTURE)
    if found is None:
        pytest.skip("there is no arm64 package of this version in dist/: run make ARCH=arm64 DEB_PYTHONS=3.11 deb")
    return found


@pytest.fixture(scope="session")
def shell(package: Package, tmp_path_factory: pytest.TempPathFactory, said: list[str]) -> Iterator[Shell]:
    """A place to run commands in where the package is installed, as in a chroot: nothing has booted."""
    lacks = missing()
    if lacks is None and platform.machine() != "aarch64" and not REGISTERED.exists():
        lacks = f"arm64 programs do not run here ({REGISTERED}): apt-get install qemu-user-static binfmt-support"
    if lacks is not None:
        pytest.skip(lacks)
    try:
        root = copy(tmp_path_factory.mktemp("emulated") / "root", architecture=ARCHITECTURE)
    except MissingError as error:
        pytest.skip(str(error))
    try:
        found = Shell(root)
        begin = time.monotonic()
        found.run("dpkg", "--force-unsafe-io", "--install", *put(root, package.main), timeout_s=INSTALL_S)
        megabytes = package.main.stat().st_size / 1e6
        said.append(f"package of {megabytes:.0f} MB installed in {time.monotonic() - begin:.1f} s")
        hang_pictures(root)
        yield found
    finally:
        subprocess.run(("rm", "-rf", str(root)), check=True)
