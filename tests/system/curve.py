"""Keys for tests over tcp: a daemon's folder, its clients' pairs, and the daemon that uses them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import zmq

import jetsel
from jetsel.keys import Certificate, KeyFolder
from jetsel.keys.folder import write_pair
from tests.system.daemons import Daemon, Peer, Start, free_port


@dataclass
class Keys:
    """The folder of a daemon's keys, and beside it a folder of clients' own."""

    folder: KeyFolder
    clients: Path

    @classmethod
    def new(cls, under: Path) -> Keys:
        keys = cls(KeyFolder(under / "keys"), under / "clients")
        keys.clients.mkdir()
        keys.folder.make_server(None)
        return keys

    def pair(self, name: str) -> Certificate:
        """A client's new pair, not allowed yet."""
        return write_pair(self.clients / f"{name}.key", self.secret(name), name, None)

    def allow(self, name: str, *, is_admin: bool = False) -> Certificate:
        pair = self.pair(name)
        self.folder.allow(name, pair.public, is_admin=is_admin)
        return pair

    def secret(self, name: str) -> Path:
        return self.clients / f"{name}.key_secret"

    def config(self, tcp: str, more: str = "") -> str:
        return f'[server]\ntcp = "{tcp}"\nkeys = "{self.folder.path}"\n{more}'

    def client(self, tcp: str, name: str, **settings: object) -> jetsel.Client:
        return jetsel.Client(tcp, key=self.secret(name), server_key=self.folder.server_public, **settings)  # type: ignore[arg-type]


@dataclass
class Guarded:
    """A running daemon that needs keys over tcp, and where."""

    daemon: Daemon
    tcp: str
    keys: Keys

    def reload(self) -> list[str]:
        with jetsel.Client(self.daemon.endpoint) as client:
            return client.reload().changed

    def logged(self, words: str) -> list[str]:
        """The log's lines that have these words; waits for the first."""
        give_up = time.monotonic() + 20
        while words not in self.daemon.log.read_text():
            assert time.monotonic() < give_up, self.daemon.log.read_text()
            time.sleep(0.05)
        return [line for line in self.daemon.log.read_text().splitlines() if words in line]


def guarded(start: Start, keys: Keys, more: str = "", host: str = "127.0.0.1") -> Guarded:
    """Start a daemon that needs keys over tcp."""
    tcp = f"tcp://{host}:{free_port()}"
    return Guarded(start(keys.config(tcp, more)), tcp, keys)


class CurvePeer(Peer):
    """A peer that speaks the protocol frame by frame and shows a key."""

    def __init__(self, tcp: str, pair: Certificate, server: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.CURVE_PUBLICKEY, pair.public.encode())
        self.socket.setsockopt(zmq.CURVE_SECRETKEY, (pair.secret or "").encode())
        self.socket.setsockopt(zmq.CURVE_SERVERKEY, server.encode())
        self.socket.connect(tcp)
