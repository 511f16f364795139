"""One fault for all tests of a process: an audit hook cannot be removed."""

from __future__ import annotations

import pytest

from tests.faults.operations import Fault

_FAULT = Fault()


@pytest.fixture
def fault() -> Fault:
    return _FAULT
