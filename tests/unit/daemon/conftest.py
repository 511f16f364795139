"""A port with real peers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from jetsel.daemon import port as port_module
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.listener import Listener
from jetsel.daemon.port import Port
from jetsel.keys import Certificate, KeyFolder, generate
from tests.unit.daemon.ports import IPC, LIMIT_S, LONG_MS, TCP, Connect


@pytest.fixture
def pair() -> Certificate:
    """The key of the peers that `connect` makes."""
    return generate()


@pytest.fixture
def over() -> str:
    """What a test is about: ipc, tcp, or tcp with keys. A test's parameter of this name takes its place."""
    return "ipc"


@pytest.fixture
def keyring(over: str, tmp_path: Path, pair: Certificate) -> Keyring | None:
    """Whose keys are let in over tcp; None: nobody needs one."""
    if over != "keys":
        return None
    folder = KeyFolder(tmp_path / "keys")
    folder.make_server(None)
    folder.allow("peer", pair.public, is_admin=False)
    return Keyring(str(folder.path))


@pytest.fixture
def port(tmp_path: Path, keyring: Keyring | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    """A port on an ipc path and on loopback, whose sleepers only a message, a wake or a late reply rouses."""
    monkeypatch.setattr(port_module, "HEARTBEAT_MS", LONG_MS)
    listener = Listener(tmp_path / "j.sock", None)
    opened = Port(listener, "tcp://127.0.0.1:0", 1_000_000, keyring)
    yield opened
    opened.close()
    listener.close()


@pytest.fixture
def connect(port: Port, keyring: Keyring | None, pair: Certificate) -> Iterator[Connect]:
    """Peers that close with the test."""
    context = zmq.Context()
    peers: list[zmq.Socket[bytes]] = []

    def begin(kind: int = zmq.DEALER, endpoint: int = IPC, **options: int) -> zmq.Socket[bytes]:
        peer = context.socket(kind)
        peer.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
        for name, value in options.items():
            peer.setsockopt(getattr(zmq, name), value)
        if keyring is not None and endpoint == TCP:
            peer.curve_serverkey = keyring.server.public.encode()
            peer.curve_publickey, peer.curve_secretkey = pair.public.encode(), (pair.secret or "").encode()
        peer.connect(port.endpoints[endpoint])
        peers.append(peer)
        return peer

    yield begin
    for peer in peers:
        peer.close(linger=0)
    context.term()
