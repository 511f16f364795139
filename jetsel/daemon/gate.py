"""Lets clients connect one by one, where there is room; the rest wait in the kernel's queue, or are hung up on.

libzmq accepts whoever connects, as fast as it can, and ends the process where accept(2) fails for want of descriptors
(libzmq 4.3.5, src/ipc_listener.cpp, `ipc_listener_t::accept`, which allows EMFILE on tcp alone, where it spins). It has
no option that limits connections, its monitor only tells of those that are already there, and unbinding closes every
connection that the endpoint has accepted. So the gate holds the one lever that the kernel gives: in the epoll instance
of libzmq's I/O thread, each listening socket is armed for one event (EPOLLONESHOT, epoll_ctl(2)). After it, libzmq does
not look at that socket until the gate, which watches it too, arms it again. The instance is found in /proc/self/fdinfo
(proc(5): its lines `tfd` name the descriptors that are watched, with their inodes since Linux 4.13).

Whose a connection is, only an accepted one tells. So whoever has more than a share is let in, seen, and hung up on.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import os
import platform
import re
import select
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from jetsel.config import Server
from jetsel.daemon import descriptors
from jetsel.daemon.connections import Connections
from jetsel.daemon.excess import Excess
from jetsel.daemon.peers import copied
from jetsel.daemon.stalls import Stalls
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

ONE_S = 0.0002  # between two that are let in: libzmq's thread accepts in less
SOON_S = 0.005  # after the last that was let in until all are looked at
FULL_S = 0.1  # between two looks for room
SELDOM_S = 0.9  # between two where nothing seems to happen: who was let in beside another one is seen then
BATCH = 16  # let in between two looks, where nobody is near a share
TELL_EVERY_S = 60.0  # at most, of those who have more than a share: they come back at once
APPEARS_S = 5.0  # libzmq's thread takes up a listening socket soon after bind has returned

_WATCHED = re.compile(r"^tfd:\s*(\d+) events:\s*([0-9a-f]+) data:\s*([0-9a-f]+)(?:.* ino:([0-9a-f]+))?", re.MULTILINE)
_EPOLL_CTL_MOD = 3  # sys/epoll.h


class _Event(ctypes.Structure):  # struct epoll_event, which is packed on x86-64 alone (sys/epoll.h)
    _pack_ = 1 if platform.machine() == "x86_64" else 8
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


_LIBC = ctypes.CDLL(None, use_errno=True)


class Gate:
    """A thread that stands at the listening sockets from `open` to `close`."""

    def __init__(self, limits: Server, others: Callable[[], int] = lambda: 0) -> None:
        """others: how many clients are connected elsewhere, in the same places."""
        self._limits = limits
        self._others = others
        self.connections = Connections(limits.client_connections, limits.keys is not None)
        self._excess = Excess(limits.peers_mb, self.connections)
        self._stalls = Stalls(limits.peer_timeout_s, self.connections)
        self._stop_r, self._stop_w = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="gate", daemon=True)
        self._listeners: dict[int, _Event] = {}
        self._over_tcp: set[int] = set()
        self._epoll = -1
        self._mine = select.poll()
        self._room: dict[int, int] = {}
        self._looked_s = 0.0
        self._is_new = False  # somebody was let in since the last look
        self._is_full = False
        self._told_s = -TELL_EVERY_S

    def guard(self, accounted_mb: Callable[[], float | None]) -> None:
        """From now on hang up on those who fill the memory; see Excess. Call it before the first request."""
        self._excess.accounted_mb = accounted_mb

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
            self._arm(descriptor, 0)
            self._mine.register(descriptor, select.POLLIN)
        self._is_new = True  # who came before
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
                watched = _WATCHED.findall(_watched_by(int(link.name)))
                kinds = {int(fd): _listens(int(fd)) for fd, *_ in watched}
                found = [fd for fd, kind in kinds.items() if kind not in (None, socket.AF_UNIX)]
                if len(found) == n_listeners:
                    self._epoll = int(link.name)
                    events = {int(fd): _Event(int(events, 16), int(data, 16)) for fd, events, data, _ in watched}
                    self._listeners = {fd: events[fd] for fd in found}
                    self._over_tcp = {fd for fd in found if kinds[fd] != socket.AF_UNIX}
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
            ready = [descriptor for descriptor, _ in self._mine.poll(self._patience_ms())]
            if self._stop_r in ready:
                return
            for descriptor in ready:
                # Each arming lets in one at most, so what was free at the last look bounds how many came since.
                if self._room.get(descriptor, 0) > 0:
                    self._arm(descriptor)
                    self._room[descriptor] -= 1
                    self._is_new = True
            if ready:
                time.sleep(ONE_S)
            is_spent = any(self._room.get(descriptor, 0) <= 0 for descriptor in ready)
            is_due = time.monotonic() - self._looked_s > (FULL_S if self._waits() else SELDOM_S)
            if is_due or (self._is_new and (is_spent or not ready)):
                self._look()
            self._excess.look()
            self._stalls.look()

    def _patience_ms(self) -> float:
        """How long nobody need come until there is something to do."""
        return 1e3 * min(
            self._excess.next_s, self._stalls.next_s, SOON_S if self._is_new else FULL_S if self._waits() else math.inf
        )

    def _waits(self) -> bool:
        return any(room <= 0 for room in self._room.values())

    def _look(self) -> None:
        """See who is there, hang up on those who are too many, and count how many may be let in until the next look."""
        self._looked_s, self._is_new = time.monotonic(), False
        for descriptor in self._listeners:
            self._arm(descriptor, 0)  # libzmq may not have used the last arming: nobody is to come in unseen
        try:
            watched = {
                int(descriptor): int(inode, 16) if inode else None
                for descriptor, _, _, inode in _WATCHED.findall(_watched_by(self._epoll))
                if int(descriptor) not in self._listeners
            }
            free = descriptors.free()
        except OSError:  # not one descriptor is left to look with
            ipc = tcp = 0
        else:
            self.connections.look(watched)
            clients = len(self.connections)
            places = max(0, min(self._limits.max_clients - self._others(), clients + free))
            self._end_surplus(places)
            ipc, tcp = (min(BATCH, room) for room in self.connections.room(places))
            self._tell(min((tcp if fd in self._over_tcp else ipc) for fd in self._listeners) <= 0, clients)
        for descriptor in self._listeners:
            self._room[descriptor] = tcp if descriptor in self._over_tcp else ipc
            # Who waits there is no news while there is no room.
            self._mine.modify(descriptor, select.POLLIN if self._room[descriptor] > 0 else 0)

    def _end_surplus(self, places: int) -> None:
        surplus, greedy = self.connections.surplus(places)
        for connection in surplus:
            self.connections.end(connection)
            self._is_new = True  # its place is free in a moment
        if greedy and time.monotonic() - self._told_s > TELL_EVERY_S:
            self._told_s, share = time.monotonic(), self.connections.share(places)
            log.warning(
                "%s has all the connections that one client may have, %d (server.client_connections), and is hung up "
                "on where it makes more: have its programs share one client",
                greedy[0],
                share,
                extra=event("client-has-its-share", client=greedy[0], clients=share),
            )

    def _tell(self, is_full: bool, clients: int) -> None:
        if is_full == self._is_full:
            return
        self._is_full = is_full
        if is_full:
            log.warning(
                "%d clients are connected and more wait for a place: raise server.max_clients (%d) or the limit of "
                "open files (%d), unless many connect over tcp and say nothing",
                clients,
                self._limits.max_clients,
                descriptors.limit(),
                extra=event("clients-wait", clients=clients),
            )
        else:
            log.info(
                "clients are let in again: %d are connected", clients, extra=event("clients-let-in", clients=clients)
            )


def _watched_by(epoll: int) -> str:
    return Path(f"/proc/self/fdinfo/{epoll}").read_text(encoding="ascii")


def _listens(descriptor: int) -> int | None:
    """Return the family of a listening socket, None for anything else."""
    try:
        with copied(descriptor) as probed:
            return int(probed.family) if probed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else None
    except OSError:  # no socket
        return None
