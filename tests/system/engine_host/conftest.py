"""Hosted backends that end with the test that made them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jetsel.base.host_settings import HostSettings
from jetsel.engines.hosted import HostedBackend
from jetsel.engines.hosting.residents import RULES, Rules
from tests.processes import ended
from tests.system.engine_host.models import Make


@pytest.fixture
def make() -> Iterator[Make]:
    """Make backends that end with the test."""

    def begin(
        interpreter: str | None = None,
        rules: Rules = RULES,
        changed: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> HostedBackend:
        host = HostSettings(engines="/nonexistent", interpreter=interpreter, **settings)
        return HostedBackend("onnxruntime", host, changed, rules)

    with ended(begin, HostedBackend.close) as begun:
        yield begun
