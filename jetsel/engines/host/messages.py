"""Messages between the daemon and the host, the host's exceptions, and its log lines."""

import json
import os
import select
import socket
import struct
import sys
from typing import Any, Dict, Optional

MAX_TEXT = 2000  # characters of an error message or log line
HEADER = struct.Struct("!I")


class Refusal(Exception):
    """A request cannot be done. The reply is {"ok": false, "code", "message"}; the message names the repair."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DeviceFailed(Exception):
    """The GPU failed and this process cannot recover: it sends the reply with code "poisoned", and ends."""


class DaemonGone(Exception):
    """The daemon has ended, or sent an unreadable message; this process ends."""


class Channel:
    """Sends and receives messages over the socket: four bytes of length, big-endian, then one JSON object."""

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
    """Return the text on one line, cut to MAX_TEXT characters."""
    return " ".join(text.split())[:MAX_TEXT]


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text, or the name of its class if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def log_line(text: str) -> None:
    """Write one line to stderr, which is the daemon's log; systemd reads the prefix as a warning."""
    if not select.select([], [sys.stderr], [], 0)[1]:
        return  # the pipe is full: replies matter more than log lines
    priority = "<4>" if "JOURNAL_STREAM" in os.environ else ""
    sys.stderr.write(f"{priority}jetsel host {os.getpid()}: {one_line(text)}\n")
    sys.stderr.flush()
