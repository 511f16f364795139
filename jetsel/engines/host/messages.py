"""The messages between the daemon and the host, the host's exceptions, and what it writes to the log."""

import json
import os
import select
import socket
import struct
import sys
from typing import Any, Dict, Optional

MAX_TEXT = 2000  # characters of a reason: enough for every line that a person reads
HEADER = struct.Struct("!I")


class Refusal(Exception):
    """What cannot be done: answered as {"ok": false, "code", "message"}; the message names the repair."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Poisoned(Exception):
    """The device failed in a way that this process cannot recover from: it is answered, and the process ends."""


class DaemonGone(Exception):
    """The daemon has ended, or sent what cannot be read."""


class Channel:
    """Messages over the socket: four bytes of length, big-endian, then one JSON object."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb")

    def receive(self) -> Optional[Dict[str, Any]]:
        """Return the next message, None if the daemon has closed its end; raises DaemonGone."""
        try:
            header = self._reader.read(HEADER.size)
            if not header:
                return None
            (length,) = HEADER.unpack(header)
            message: Dict[str, Any] = json.loads(self._reader.read(length).decode("utf-8"))
        except (OSError, ValueError, struct.error) as error:
            raise DaemonGone(f"the message cannot be read: {error}") from None
        return message

    def send(self, message: Dict[str, Any]) -> None:
        """Send one message; raises DaemonGone."""
        body = json.dumps(message).encode("utf-8")
        try:
            self._socket.sendall(HEADER.pack(len(body)) + body)
        except OSError as error:
            raise DaemonGone(f"the socket broke: {error}") from None


def one_line(text: str) -> str:
    """Return the text on one line, bounded."""
    return " ".join(text.split())[:MAX_TEXT]


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text, the name of its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def say(text: str) -> None:
    """Write one line to the standard error, which is the daemon's; under systemd it is marked as a warning."""
    if not select.select([], [sys.stderr], [], 0)[1]:
        return  # nobody reads what is written: the answers matter more
    priority = "<4>" if "JOURNAL_STREAM" in os.environ else ""
    sys.stderr.write(f"{priority}jetsel host {os.getpid()}: {one_line(text)}\n")
    sys.stderr.flush()
