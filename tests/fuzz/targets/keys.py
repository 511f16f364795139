"""The text of a key file, the address of a peer as libzmq tells it, a handshake's frames, and a log line's fields."""

from __future__ import annotations

from collections.abc import Iterator

from jetsel.daemon.access.zap import Handshakes
from jetsel.daemon.identity import identify
from jetsel.daemon.logs.journal import encode
from jetsel.errors import ConfigError
from jetsel.keys.certificate import Certificate, parse, write

MAX_BYTES = 1024
WORDS = (
    b"public-key",
    b"secret-key",
    b" = ",
    b'"',
    b":0:0:1",
    b"localhost",
    b"1.0",
    b"CURVE",
    b"curve\n",
    "\N{SUPERSCRIPT TWO}".encode(),
)
PUBLIC = "yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"  # of RFC 26's example
SECRET = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
OPEN = Handshakes(None)


def run(data: bytes) -> None:
    """A key that is read is written and read back; nobody becomes anybody by a text of their own; fields stay apart."""
    text = data.decode("utf-8", "replace")
    sender = identify(text)
    assert sender.credentials is None or all(number >= 0 for number in sender.credentials)
    assert OPEN.identify(text) is None
    frames = data.split(b"\n")
    assert OPEN.judge(frames).reply[2] in (b"200", b"500")
    entry = encode([("MESSAGE", text), ("PRIORITY", "6")])
    assert entry.endswith(b"PRIORITY=6\n")
    try:
        found = parse(text, "a file")
    except ConfigError:
        return
    again = parse(write(Certificate(found.public, found.secret), "a key"), "a file")
    assert (again.public, again.secret) == (found.public, found.secret)


def seeds() -> Iterator[bytes]:
    yield write(Certificate(PUBLIC, SECRET, {"name": "camera-1", "admin": "yes"}), "a key").encode()
    yield write(Certificate(PUBLIC), "a key").encode()
    yield b"localhost:1000:1000:4242"
    yield b":0:0:1"
    yield b"127.0.0.1:4242"
    yield b"1.0\n1\njetsel\n127.0.0.1\n\nCURVE\n" + bytes(range(32))
