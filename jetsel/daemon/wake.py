"""How idle threads sleep: on ZeroMQ's descriptor and on a bell, so that each event rouses one of them and no more."""

from __future__ import annotations

import select

from jetsel.bell import Bell


class Waiter:
    """One thread's place to sleep.

    Every thread has an epoll of its own, and the kernel rouses one of those that sleep on a descriptor (EPOLLEXCLUSIVE,
    Linux 4.5): a lone request needs no thread to hand it to another, and no two run for the same message.
    """

    def __init__(self, socket_fd: int, bell: Bell) -> None:
        self._bell = bell
        self._epoll = select.epoll()
        for descriptor in (socket_fd, bell.fd):
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def wait(self, timeout_ms: float) -> None:
        """Sleep until the socket has news, the bell rings, or the time is over."""
        for descriptor, _ in self._epoll.poll(timeout_ms / 1e3):
            if descriptor == self._bell.fd:
                self._bell.heard()
