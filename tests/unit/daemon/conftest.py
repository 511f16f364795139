"""A port with real peers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from jetsel.base.config import ServerSettings
from jetsel.daemon.listener import Listener
from jetsel.daemon.port import Port
from tests.processes import ended
from tests.unit.daemon.ports import LIMIT_S, Connect


@pytest.fixture
def limits() -> ServerSettings:
    """A test's parameter of this name takes its place."""
    return ServerSettings()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sock"


@pytest.fixture
def port(path: Path, limits: ServerSettings) -> Iterator[Port]:
    listener = Listener(path, None)
    opened = Port(listener, 1_000_000, limits)
    yield opened
    opened.close()
    listener.close()


@pytest.fixture
def connect(port: Port) -> Iterator[Connect]:
    """Peers that close with the test."""
    context = zmq.Context()

    def begin(kind: int = zmq.DEALER, **options: int) -> zmq.Socket[bytes]:
        peer = context.socket(kind)
        peer.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
        for name, value in options.items():
            peer.setsockopt(getattr(zmq, name), value)
        peer.connect(port.endpoints[0])
        return peer

    with ended(begin, lambda peer: peer.close(linger=0)) as begun:
        yield begun
    context.term()
