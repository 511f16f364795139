"""The experiments' tests get what all tests get."""

from __future__ import annotations

import importlib.util

from tests.private import leave_the_machines_folders

collect_ignore = [] if importlib.util.find_spec("torch") else ["test_training.py"]  # make test-system has torch


def pytest_configure() -> None:
    """Leave the user's folders alone, as tests/conftest.py does."""
    leave_the_machines_folders()
