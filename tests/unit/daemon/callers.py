"""Who calls at a socket's file."""

from __future__ import annotations

import socket
from pathlib import Path


def somebody_answers(path: Path) -> bool:
    """Whether anybody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0
