"""An eventfd that threads wait for together with sockets (eventfd(2))."""

from __future__ import annotations

import contextlib
import os


class EventFd:
    """A counter; each `set` ends one wait for its descriptor, whether that has begun or not."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        """End one wait."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Count one wait that has ended; the others are set again: a waiting thread sees each once (EPOLLET)."""
        with contextlib.suppress(BlockingIOError):  # another thread, awake by the same event, was first
            count = os.eventfd_read(self.fd)
            if count > 1:
                os.eventfd_write(self.fd, count - 1)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
