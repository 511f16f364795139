"""Gateways that end with the test that asked for them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.system.daemons import Daemon
from tests.system.gateway.gateways import Gateway, launch

Open = Callable[..., Gateway]


@pytest.fixture
def open_gateway() -> Iterator[Open]:
    """Start gateways; each must end well when it is told to."""
    running: list[Gateway] = []

    def begin(endpoint: str, *options: str, command: tuple[str, ...] = ("gateway",)) -> Gateway:
        running.append(launch(endpoint, *options, command=command))
        return running[-1]

    yield begin
    for gateway in running:
        gateway.process.terminate()
        assert gateway.process.wait(30) in (0, -signal.SIGTERM, -signal.SIGKILL)
        assert gateway.process.stdout is not None
        gateway.process.stdout.close()


@pytest.fixture
def gateway(shared_daemon: Daemon, open_gateway: Open) -> Gateway:
    """A gateway of the shared daemon."""
    return open_gateway(shared_daemon.endpoint)
