"""The experiments' tests get what all tests get."""

from __future__ import annotations

from tests.private import leave_the_machines_folders


def pytest_configure() -> None:
    """Leave the user's folders alone, as tests/conftest.py does."""
    leave_the_machines_folders()
