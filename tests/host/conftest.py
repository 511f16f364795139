"""An engine host under each interpreter in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.host import interpreters
from tests.host.started import StartedHost


@pytest.fixture(scope="module", params=interpreters.found(), ids=interpreters.short_name)
def interpreter(request: pytest.FixtureRequest) -> str:
    """Each interpreter that was found, in turn; test_interpreters.py names those that were not."""
    return str(request.param)


@pytest.fixture(scope="module")
def host(interpreter: str) -> Iterator[StartedHost]:
    """A host that has said hello, for the tests that leave it as it was."""
    with StartedHost(interpreter) as started:
        reply = started.hello()
        assert reply["ok"], reply
        yield started


@pytest.fixture
def fresh(interpreter: str) -> Iterator[StartedHost]:
    """A host that nobody has spoken to."""
    with StartedHost(interpreter) as started:
        yield started
