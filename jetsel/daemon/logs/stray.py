"""What libraries print on stderr by themselves, as lines of the log like any other: told five times, then counted.

A damaged photograph has libjpeg or libpng print a line. Left alone, a client could fill the disk with those, or use up
what the journal takes of this service in a while (journald.conf(5), RateLimitBurst=) and so hide the lines that matter.
"""

from __future__ import annotations

import contextlib
import logging
import os

from jetsel import overheard
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")


class Stray:
    """Leads the descriptor `fd` into the log until `close`. `own_fd` is where it led before, for the log itself."""

    def __init__(self, fd: int) -> None:
        """Raises OSError where no descriptor can be had."""
        self._fd = fd
        self.own_fd = os.dup(fd)
        heard, said = overheard.pipe()
        os.set_blocking(said, False)  # who prints more than the pipe holds loses it, and holds up nobody
        os.dup2(said, fd)
        os.close(said)
        overheard.overhear(heard, _tell, "stderr")

    def close(self) -> None:
        """Lead it back to where it led; what `own_fd` is stays open, for whoever holds it."""
        with contextlib.suppress(OSError):
            os.dup2(self.own_fd, self._fd)


def _tell(line: str) -> None:
    log.info("a library printed: %s", line, extra=event("library-output"))
