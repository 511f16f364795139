"""Lets clients connect one by one, and none where a limit is reached: they wait in the kernel's queue till one left.

libzmq accepts whoever connects, as fast as it can, and ends the process where accept(2) fails for want of descriptors
(libzmq 4.3.5, src/ipc_listener.cpp, `ipc_listener_t::accept`, which allows EMFILE on tcp alone, where it spins). It has
no option that limits connections, its monitor only tells of those that are already there, and unbinding closes every
connection that the endpoint has accepted. So the gate holds the one lever that the kernel gives: in the epoll instance
of libzmq's I/O thread, each listening socket is armed for one event (EPOLLONESHOT, epoll_ctl(2)). After it, libzmq does
not look at that socket until the gate, which watches it too, arms it again. The instance is found in /proc/self/fdinfo
(proc(5): its lines `tfd` name the descriptors that are watched, and the data that goes with each).
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import platform
import re
import select
import socket
import threading
import time
from pathlib import Path

from jetsel.daemon import descriptors
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

ONE_S = 0.0002  # between two that are let in: libzmq's thread accepts in less
FULL_S = 0.1  # between two looks for room
APPEARS_S = 5.0  # libzmq's thread takes up a listening socket soon after bind has returned

_WATCHED = re.compile(r"^tfd:\s*(\d+) events:\s*([0-9a-f]+) data:\s*([0-9a-f]+)", re.MULTILINE)
_EPOLL_CTL_MOD = 3  # sys/epoll.h


class _Event(ctypes.Structure):  # struct epoll_event, which is packed on x86-64 alone (sys/epoll.h)
    _pack_ = 1 if platform.machine() == "x86_64" else 8
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


_LIBC = ctypes.CDLL(None, use_errno=True)


class Gate:
    """A thread that stands at the listening sockets from `open` to `close`."""

    def __init__(self, max_clients: int) -> None:
        self._max_clients = max_clients
        self._stop_r, self._stop_w = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="gate", daemon=True)
        self._listeners: dict[int, _Event] = {}
        self._epoll = -1
        self._mine = select.poll()
        self._room = 0
        self._is_full = False

    def open(self, n_listeners: int) -> None:
        """Take over what libzmq has bound; where this libzmq watches its sockets in another way, nothing is limited."""
        give_up_s = time.monotonic() + APPEARS_S
        while not self._find(n_listeners):
            if time.monotonic() > give_up_s:
                log.warning(
                    "connections are not limited: libzmq's listening sockets are in no epoll instance",
                    extra=event("clients-unlimited"),
                )
                return
            time.sleep(0.001)
        self._mine.register(self._stop_r, select.POLLIN)
        for descriptor in self._listeners:
            self._arm(descriptor)
            self._mine.register(descriptor, select.POLLIN)
        self._thread.start()

    def close(self) -> None:
        """Leave the sockets as they are; call it before libzmq closes them, since descriptors are used again."""
        self._leave()
        os.close(self._stop_r)
        os.close(self._stop_w)

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens at that socket next. Only `close` follows."""
        self._leave()
        for descriptor in self._listeners:
            self._arm(descriptor, 0)

    def _leave(self) -> None:
        if self._thread.ident is not None and self._thread.is_alive():
            os.write(self._stop_w, b"x")
            self._thread.join()

    def _find(self, n_listeners: int) -> bool:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if str(link.readlink()) != "anon_inode:[eventpoll]":
                    continue
                found = {
                    int(watched): _Event(int(events, 16), int(data, 16))
                    for watched, events, data in _WATCHED.findall(_watched_by(int(link.name)))
                    if _is_listening(int(watched))
                }
                if len(found) == n_listeners:
                    self._epoll, self._listeners = int(link.name), found
                    return True
        return False

    def _arm(self, descriptor: int, events: int = select.EPOLLIN) -> None:
        event = self._listeners[descriptor]
        event.events = events | select.EPOLLONESHOT
        if _LIBC.epoll_ctl(self._epoll, _EPOLL_CTL_MOD, descriptor, ctypes.byref(event)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def _serve(self) -> None:
        while True:
            ready = [descriptor for descriptor, _ in self._mine.poll()]
            if self._stop_r in ready:
                return
            self._let_in(ready)
            time.sleep(ONE_S if self._room > 0 else FULL_S)

    def _let_in(self, ready: list[int]) -> None:
        for descriptor in ready:
            # Each arming lets in one at most, so what was free at the last look bounds how many came since.
            if self._room <= 0:
                self._room = self._look()
            if self._room > 0:
                self._arm(descriptor)
                self._room -= 1

    def _look(self) -> int:
        """Return how many may be let in now."""
        try:
            watched = len(_WATCHED.findall(_watched_by(self._epoll)))
            free = descriptors.free()
        except OSError:  # not one descriptor is left to look with
            return 0
        clients = watched - len(self._listeners) - 1  # and libzmq's own mailbox
        room = min(self._max_clients - clients, free)
        if (room <= 0) != self._is_full:
            self._is_full = room <= 0
            self._tell(clients)
        return room

    def _tell(self, clients: int) -> None:
        if self._is_full:
            log.warning(
                "%d clients are connected and more wait: raise server.max_clients (%d) or the limit of open files (%d)",
                clients,
                self._max_clients,
                descriptors.limit(),
                extra=event("clients-wait", clients=clients),
            )
        else:
            log.info(
                "clients are let in again: %d are connected", clients, extra=event("clients-let-in", clients=clients)
            )


def _watched_by(epoll: int) -> str:
    return Path(f"/proc/self/fdinfo/{epoll}").read_text(encoding="ascii")


def _is_listening(descriptor: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as probed:
            return bool(probed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:  # no socket
        return False
