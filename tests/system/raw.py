"""Peers made of bytes, for what no ZeroMQ library does: half a greeting, half a frame, silence."""

import socket
import struct
import time
from pathlib import Path

from jetsel.daemon.zmtp import MORE, encode_frame
from tests.waiting import LIMIT_S


def reach(endpoint: str) -> socket.socket:
    """A connection to an ipc endpoint that says nothing by itself."""
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(str(Path(endpoint.removeprefix("ipc://"))))
    return peer


def greeting(mechanism: bytes = b"NULL") -> bytes:
    """The 64 bytes that a ZMTP 3.1 connection begins with (ZeroMQ RFC 37)."""
    return b"\xff" + bytes(8) + b"\x7f" + b"\x03\x01" + mechanism.ljust(20, b"\0") + bytes(32)


def ready(**more: bytes) -> bytes:
    """The command READY of a DEALER under NULL, with more metadata; _ in a name stands for -."""
    body = b"\x05READY"
    for name, value in {"Socket_Type": b"DEALER", **more}.items():
        body += bytes([len(name)]) + name.replace("_", "-").encode() + struct.pack(">I", len(value)) + value
    return b"\x04" + bytes([len(body)]) + body


def frame(body: bytes, announced: int | None = None) -> bytes:
    """A frame that is the last of its message; announced: its length if not that of `body`."""
    return b"\x02" + struct.pack(">Q", len(body) if announced is None else announced) + body


def message(*bodies: bytes) -> bytes:
    """A message of these frames."""
    return b"".join(encode_frame(MORE if at < len(bodies) - 1 else 0, body) for at, body in enumerate(bodies))


def hung_up(peer: socket.socket) -> bool:
    """Read on until the other side closes; False where it has not in a long time."""
    give_up = time.monotonic() + LIMIT_S
    peer.settimeout(LIMIT_S)
    try:
        while time.monotonic() < give_up:
            if not peer.recv(4096):
                return True
    except ConnectionError:
        return True
    except TimeoutError:
        pass
    return False
