"""A bell that threads can hear while they sleep on descriptors."""

from __future__ import annotations

import contextlib
import os


class Bell:
    """A counter that threads sleep on; each ring ends one wait, whether it has begun or not."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def ring(self) -> None:
        """End one wait."""
        os.eventfd_write(self.fd, 1)

    def heard(self) -> None:
        """Take one ring off the counter; others are rung again, for who is told of each ring once (EPOLLET)."""
        with contextlib.suppress(BlockingIOError):  # another thread, awake by the same ring, was first
            rings = os.eventfd_read(self.fd)
            if rings > 1:
                os.eventfd_write(self.fd, rings - 1)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
