"""A folder for a daemon of another user than root, and how to become one."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.root.users import OWNER


@pytest.fixture
def place() -> Iterator[Path]:
    """One that the daemon's user owns and others may enter; pytest's own is closed to them."""
    with TemporaryDirectory(prefix="jetsel-test-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101
        os.chown(folder, pwd.getpwnam(OWNER).pw_uid, pwd.getpwnam(OWNER).pw_gid)
        yield Path(folder)
