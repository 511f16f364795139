"""Daemons and peers that end with the test that asked for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.processes import ended, kill
from tests.system.boards import Board
from tests.system.daemons import Connect, Daemon, Peer, Start, drawn, encoded, launch, serving, wait_until_ready
from tests.system.manager import Manager


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start daemons that end with the test."""
    with ended(launch, kill) as launched:

        def begin(config: str = "", *, ready: bool = True, **options: Any) -> Daemon:
            daemon = launched(tmp_path, config, **options)
            if ready:
                wait_until_ready(daemon)
            return daemon

        yield begin


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with the defaults, for tests that leave it as it was."""
    with serving(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Open peers that close with the test."""

    def begin(daemon: Daemon | str, kind: int = zmq.DEALER) -> Peer:
        return Peer(daemon if isinstance(daemon, str) else daemon.endpoint, kind)

    with ended(begin, Peer.close) as begun:
        yield begun


@pytest.fixture
def peer(shared_daemon: Daemon, connect: Connect) -> Peer:
    """A peer of the shared daemon."""
    return connect(shared_daemon)


@pytest.fixture(scope="session")
def jpeg() -> bytes:
    """A small JPEG file."""
    return encoded(drawn())


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "board")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A service manager that a daemon tells how it is, where it has its environment."""
    manager = Manager(tmp_path / "notify")
    yield manager
    manager.close()
