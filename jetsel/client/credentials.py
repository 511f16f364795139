"""What a client shows a daemon over tcp: its own pair of keys, and the daemon's public key that it expects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import zmq

from jetsel.errors import ConfigError
from jetsel.keys import files
from jetsel.keys.certificate import is_key, parse

KEY_VARIABLE = "JETSEL_KEY"
SERVER_KEY_VARIABLE = "JETSEL_SERVER_KEY"


class Credentials(NamedTuple):
    """A client's pair and the daemon's public key, each as Z85 bytes, as libzmq's CURVE options take them."""

    public: bytes
    secret: bytes
    server: bytes

    def __repr__(self) -> str:
        return f"Credentials(public={self.public!r}, server={self.server!r})"


def credentials(
    key: str | os.PathLike[str] | None,
    server_key: str | os.PathLike[str] | None,
    environment: Mapping[str, str] | None = None,
) -> Credentials | None:
    """Return what the two name, or else $JETSEL_KEY and $JETSEL_SERVER_KEY; None where neither is given.

    key: path of one's own secret key file. server_key: path of the daemon's public key file, or its 40 letters. Raises
    ConfigError where only one of them is given, or one cannot be used, and where others may read the secret.
    """
    environment = os.environ if environment is None else environment
    own = key or environment.get(KEY_VARIABLE)
    server = server_key or environment.get(SERVER_KEY_VARIABLE)
    if not own and not server:
        return None
    if not own:
        raise ConfigError(f"the daemon's key is given and your own is not: add key, --key or ${KEY_VARIABLE}")
    if not server:
        raise ConfigError(
            f"your key is given and the daemon's is not: add server_key, --server-key or ${SERVER_KEY_VARIABLE}, "
            "a copy of the daemon's server.key"
        )
    if not zmq.has("curve"):
        raise ConfigError("this libzmq was built without CURVE: install pyzmq from its wheel, pip install pyzmq")
    pair = _own(Path(own))
    return Credentials(*pair, _server(server).encode())


def _own(path: Path) -> tuple[bytes, bytes]:
    user = os.geteuid()
    owners = None if user == 0 else frozenset({0, user})  # root may use anybody's
    pair = parse(files.read(path, forbidden=files.READABLE, owners=owners), str(path))
    if pair.secret is None:
        raise ConfigError(f"{path} is the public half of a key: name the file that ends in .key_secret")
    return pair.public.encode(), pair.secret.encode()


def _server(given: str | os.PathLike[str]) -> str:
    """A file's key where there is such a file, else the text itself: a path may look like a key."""
    text = os.fspath(given)
    if is_key(text) and not Path(text).exists():
        return text
    repair = "copy the daemon's server.key there"
    return parse(files.read(Path(text), forbidden=files.WRITABLE, repair=repair), text).public
