"""The machine that the tests share, with the package installed, and pictures in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.booted.machine import Machine
from tests.booted.package import Package, built, install, people
from tests.booted.release import RELEASES, MissingError, Release, base, copy, missing


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the release's systemd is too old for: those tests could not say anything there."""
    has = RELEASES[config.getoption("release")].systemd
    marks = {item: item.get_closest_marker("systemd") for item in items}
    left_out = [item for item, mark in marks.items() if mark is not None and mark.args[0] > has]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def release(pytestconfig: pytest.Config, said: list[str]) -> Release:
    """The release that machines are copies of."""
    lacks = missing()
    if lacks is not None:
        pytest.skip(lacks)
    found = RELEASES[pytestconfig.getoption("release")]
    begin = time.monotonic()
    try:
        base(found)
    except MissingError as error:
        pytest.skip(str(error))
    said.append(f"{found.suite} made, or found: {time.monotonic() - begin:.1f} s")
    return found


@pytest.fixture(scope="session")
def package() -> Package:
    """The package of this machine's architecture, as `make deb` left it."""
    found = built()
    if found is None:
        pytest.skip("there is no package of this version in dist/: run make deb")
    return found


@pytest.fixture(scope="session")
def machine(
    release: Release, package: Package, tmp_path_factory: pytest.TempPathFactory, said: list[str]
) -> Iterator[Machine]:
    """A booted machine with the package, two users and pictures; every test leaves the service running."""
    begin = time.monotonic()
    root = copy(tmp_path_factory.mktemp("booted") / "root", release)
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
