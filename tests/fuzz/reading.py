"""Reads what a peer has written as the daemon's server does, and checks that it is within the limits."""

from __future__ import annotations

from jetsel.daemon.zmtp.connection import MOST_PARTS, Connection
from jetsel.daemon.zmtp.wire import MAX_COMMAND_BYTES, ProtocolError

FRAME_BYTES = 2000
PIECES = (1, 7, 64, 300, 4096)  # bytes that are read at a time
SLACK_BYTES = 200  # what two frames are sealed in


def read(connection: Connection, piece: int) -> tuple[list[list[bytes]], bool]:
    """Return the messages that have come, and whether the peer was refused."""
    scratch = memoryview(bytearray(piece))
    found: list[list[bytes]] = []
    connection.may_have_more(has_left=False)
    try:
        while True:
            while (parts := connection.take()) is not None or connection.has_unread:
                if parts is None:
                    continue
                assert 1 <= len(parts) <= MOST_PARTS
                assert sum(map(len, parts)) <= 2 * FRAME_BYTES + SLACK_BYTES
                found.append([bytes(part) for part in parts])
            assert 0 <= connection.held_bytes <= 2 * FRAME_BYTES + SLACK_BYTES
            assert connection.held_bytes == 0 or not connection.is_between
            if not connection.fill(scratch):
                break
    except ProtocolError:
        return found, True
    finally:
        assert all(len(each) <= MAX_COMMAND_BYTES for each in connection.to_send)
        assert not found or connection.is_open
    return found, False
