"""Gateways that end with the test that asked for them."""

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.processes import ended
from tests.system.daemons import Daemon
from tests.system.gateway.gateways import Gateway, launch, opened

Open = Callable[..., Gateway]


@pytest.fixture
def open_gateway() -> Iterator[Open]:
    """Start gateways; each must end well when it is told to."""

    def end(gateway: Gateway) -> None:
        gateway.process.terminate()
        assert gateway.process.wait(30) in (0, -signal.SIGTERM, -signal.SIGKILL)
        gateway.process.stdout.close()

    with ended(launch, end) as begin:
        yield begin


@pytest.fixture(scope="session")
def gateway(shared_daemon: Daemon) -> Iterator[Gateway]:
    """A gateway of the shared daemon, for tests that leave it as it was."""
    with opened(shared_daemon.endpoint) as gateway:
        yield gateway
