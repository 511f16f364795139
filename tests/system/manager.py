"""A service manager, as far as the daemon sees one: a datagram socket that it tells how it is."""

import socket
import time
from pathlib import Path

from tests.waiting import LIMIT_S


class Manager:
    """Hears what a daemon says that is started with `environment`."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.heard: list[dict[str, str]] = []
        self.environment = {"NOTIFY_SOCKET": str(path)}

    def hear(self, limit_s: float = 0.0) -> dict[str, str] | None:
        """Return the next word, None where none comes within the limit."""
        self._socket.settimeout(limit_s)  # 0: what is there already
        try:
            word = dict(line.split("=", 1) for line in self._socket.recv(8192).decode().split("\n"))
        except (TimeoutError, BlockingIOError):
            return None
        self.heard.append(word)
        return word

    def hear_all(self) -> list[dict[str, str]]:
        """Return every word that is there."""
        found = []
        while (word := self.hear()) is not None:
            found.append(word)
        return found

    def wait_for(self, **expected: str) -> dict[str, str]:
        """Return the next word with these fields; words before it are kept in `heard`."""
        give_up_s = time.monotonic() + LIMIT_S
        while (left_s := give_up_s - time.monotonic()) > 0:
            word = self.hear(left_s)
            if word is not None and expected.items() <= word.items():
                return word
        raise AssertionError(f"{expected} was never said; heard: {self.heard[-20:]}")

    def wait_for_feedings(self, count: int) -> None:
        """Wait until the watchdog was fed so often from now on."""
        self.hear_all()
        for _ in range(count):
            self.wait_for(WATCHDOG="1")

    def close(self) -> None:
        self._socket.close()
