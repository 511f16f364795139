"""Hosted backends that end with the test that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jetsel.config import Host
from jetsel.engines.hosted import HostedBackend
from jetsel.engines.hosting.rules import RULES, Rules
from tests.system.engine_host.models import Make


@pytest.fixture
def make() -> Iterator[Make]:
    """Make backends that end with the test."""
    made: list[HostedBackend] = []

    def begin(
        host: Host | None = None, rules: Rules = RULES, changed: Callable[[], None] = lambda: None
    ) -> HostedBackend:
        made.append(HostedBackend("onnxruntime", host or Host(), changed, rules))
        return made[-1]

    yield begin
    for backend in made:
        backend.close()
