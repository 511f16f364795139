"""The machine that the tests share, with the package installed, and pictures in it."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.booted.machine import Machine
from tests.booted.operator import settle
from tests.booted.package import Package, built, install
from tests.booted.release import RELEASES, MissingError, Release, base, copy


@pytest.fixture(scope="session")
def release(pytestconfig: pytest.Config) -> Release:
    """The release that machines are copies of."""
    found = RELEASES[pytestconfig.getoption("release")]
    try:
        base(found)
    except MissingError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture(scope="session")
def package() -> Package:
    """The package of this machine's architecture, as `make deb` left it."""
    found = built()
    if found is None:
        pytest.skip("there is no package of this version in dist/: run make deb")
    return found


@pytest.fixture(scope="session")
def machine(release: Release, package: Package, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A booted machine with the package, two users and pictures; every test leaves the service running."""
    root = copy(tmp_path_factory.mktemp("booted") / "root", release)
    try:
        with Machine(root) as booted:
            install(booted, package.main)
            settle(booted)
            yield booted
    finally:
        subprocess.run(("rm", "-rf", str(root)), check=True)
