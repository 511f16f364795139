"""The machine that the tests share, with the package installed, and pictures in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.debian import MissingError, base, copy, missing
from tests.booted.machine import Machine
from tests.booted.package import Package, built, install, people


@pytest.fixture(scope="session")
def debian(said: list[str]) -> Path:
    """The Debian that machines are copies of."""
    lacks = missing()
    if lacks is not None:
        pytest.skip(lacks)
    begin = time.monotonic()
    try:
        made = base()
    except MissingError as error:
        pytest.skip(str(error))
    said.append(f"Debian made, or found: {time.monotonic() - begin:.1f} s")
    return made


@pytest.fixture(scope="session")
def package() -> Package:
    """The package of this machine's architecture, as `make deb` left it."""
    found = built()
    if found is None:
        pytest.skip("there is no package of this version in dist/: run make deb")
    return found


@pytest.fixture(scope="session")
def machine(
    debian: Path, package: Package, tmp_path_factory: pytest.TempPathFactory, said: list[str]
) -> Iterator[Machine]:
    """A booted machine with the package, two users and pictures; every test leaves the service running."""
    begin = time.monotonic()
    root = copy(tmp_path_factory.mktemp("booted") / "root")
    try:
        with Machine(root) as booted:
            said.append(f"copied and booted in {time.monotonic() - begin:.1f} s")
            begin = time.monotonic()
            install(booted, package.main)
            said.append(
                f"package of {package.main.stat().st_size / 1e6:.0f} MB installed in {time.monotonic() - begin:.1f} s"
            )
            people(booted)
            yield booted
    finally:
        subprocess.run(("rm", "-rf", str(root)), check=True)
