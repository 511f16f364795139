"""What the machine saw that the tests share."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.debian import MissingError, kernel
from tests.kernel.machine import run

CACHE = "JETSEL_KERNEL_CACHE"  # a folder where what was fetched and built stays


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was seen of each chip. The kernel and its modules are taken from JETSEL_KERNEL_CACHE if they are there."""
    machine = os.uname().machine
    if machine != "x86_64":
        pytest.skip(f"the guest runs this machine's Python, so it must be a PC, not {machine}")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("needs QEMU: apt-get install --no-install-recommends qemu-system-x86")
    cache = os.environ.get(CACHE)
    try:
        found = kernel(Path(cache) if cache else tmp_path_factory.mktemp("kernel"))
    except MissingError as error:
        pytest.skip(str(error))
    return run(found, tmp_path_factory.mktemp("machine"))
