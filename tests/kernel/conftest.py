"""The machine that the tests share: made once, started once, and how long both took."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.board import Board
from tests.kernel.debian import Kernel, MissingError, kernel
from tests.kernel.machine import Machine

CACHE = "JETSEL_KERNEL_CACHE"  # a folder where what was fetched and built stays


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, said: list[str]) -> Kernel:
    """The kernel and its modules, from JETSEL_KERNEL_CACHE if they are there."""
    machine = os.uname().machine
    if machine != "x86_64":
        pytest.skip(f"the guest runs this machine's Python, so it must be a PC, not {machine}")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("needs QEMU: apt-get install --no-install-recommends qemu-system-x86")
    cache = os.environ.get(CACHE)
    begin = time.monotonic()
    try:
        found = kernel(Path(cache) if cache else tmp_path_factory.mktemp("kernel"))
    except MissingError as error:
        pytest.skip(str(error))
    said.append(f"kernel {found.release}, fetched and built, or found: {time.monotonic() - begin:.1f} s")
    return found


@pytest.fixture(scope="session")
def machine(built: Kernel, tmp_path_factory: pytest.TempPathFactory, said: list[str]) -> Iterator[Machine]:
    """The machine, running, with a chip of each kind that has its driver."""
    begin = time.monotonic()
    with Machine(built, tmp_path_factory.mktemp("machine")) as running:
        said.append(f"started in {time.monotonic() - begin:.1f} s")
        yield running
    said.append(f"switched off {time.monotonic() - begin:.1f} s later")


@pytest.fixture
def board(machine: Machine) -> Iterator[Board]:
    """An INA3221 with Linux's own driver, in its first state: three channels on, no power, shunts of 10 mOhm."""
    with Board(machine) as made:
        yield made
