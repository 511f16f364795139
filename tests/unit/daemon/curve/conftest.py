"""Connections by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.unit.daemon.curve.accepted import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Connections that end with the test."""
    with ExitStack() as stack:
        yield Rig(stack)
