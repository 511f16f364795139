"""The text of a key file, and what a peer may show as its key."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from jetsel.daemon.access.keyring import Keyring
from jetsel.errors import ConfigError
from jetsel.keys import KeyFolder
from jetsel.keys.certificate import Certificate, parse, write

MAX_BYTES = 1024
WORDS = (
    b"public-key",
    b"secret-key",
    b" = ",
    b'"',
    b"curve\n",
    "\N{SUPERSCRIPT TWO}".encode(),
)
PUBLIC = "yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"  # of RFC 26's example
SECRET = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"


def _keyring() -> Keyring:
    """With one key that is allowed."""
    with tempfile.TemporaryDirectory() as name:
        folder = KeyFolder(Path(name) / "keys")
        folder.make_server(None)
        folder.allow("camera-1", PUBLIC, is_admin=True)
        return Keyring(str(folder.path))


KEYRING = _keyring()


def run(data: bytes) -> None:
    """A key that is read is written and read back; nobody becomes anybody by a text of their own."""
    text = data.decode("utf-8", "replace")
    assert bool(KEYRING.identify(text).refusal) == (text != PUBLIC)
    try:
        found = parse(text, "a file")
    except ConfigError:
        return
    again = parse(write(Certificate(found.public, found.secret), "a key"), "a file")
    assert (again.public, again.secret) == (found.public, found.secret)


def seeds() -> Iterator[bytes]:
    yield write(Certificate(PUBLIC, SECRET, {"name": "camera-1", "admin": "yes"}), "a key").encode()
    yield write(Certificate(PUBLIC), "a key").encode()
    yield PUBLIC.encode()
