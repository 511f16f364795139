"""Lets clients connect one by one, where there is room; the rest wait in the kernel's queue, or are hung up on.

libzmq accepts whoever connects, as fast as it can, and spins where accept(2) fails for want of descriptors (libzmq
4.3.5, src/tcp_listener.cpp, `tcp_listener_t::accept`). It has no option that limits connections, its monitor only tells
of those that are already there, and unbinding closes every connection that the endpoint has accepted. So the gate holds
the one lever that the kernel gives: in the epoll instance of libzmq's I/O thread, the listening socket is armed for one
event (EPOLLONESHOT, epoll_ctl(2)). After it, libzmq does not look at that socket until the gate, which watches it too,
arms it again. The instance is found in /proc/self/fdinfo (proc(5): its lines `tfd` name the descriptors that are
watched, with their inodes since Linux 4.13).

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
from jetsel.daemon.curve.connections import Connections
from jetsel.daemon.curve.excess import Excess
from jetsel.daemon.curve.peers import copied
from jetsel.daemon.curve.stalls import Stalls
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
    """A thread that stands at the listening socket from `open` to `close`."""

    def __init__(self, limits: Server, elsewhere: Callable[[], int]) -> None:
        """elsewhere: how many of the same places others have taken."""
        self._limits = limits
        self._elsewhere = elsewhere
        self.connections = Connections(limits.client_connections)
        self._excess = Excess(limits.peers_mb, self.connections)
        self._stalls = Stalls(limits.peer_timeout_s, self.connections)
        self._stop_r, self._stop_w = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="gate", daemon=True)
        self._listening = -1  # libzmq's socket
        self._event = _Event()
        self._epoll = -1
        self._mine = select.poll()
        self._room = 0
        self._looked_s = 0.0
        self._is_new = False  # somebody was let in since the last look
        self._is_full = False
        self._told_s = -TELL_EVERY_S

    def guard(self, accounted_mb: Callable[[], float | None]) -> None:
        """From now on hang up on those who fill the memory; see Excess. Call it before the first request."""
        self._excess.accounted_mb = accounted_mb

    def open(self) -> None:
        """Take over what libzmq has bound; where this libzmq watches its sockets in another way, nothing is limited."""
        give_up_s = time.monotonic() + APPEARS_S
        while not self._find():
            if time.monotonic() > give_up_s:
                log.warning(
                    "connections over tcp are not limited: libzmq's listening socket is in no epoll instance",
                    extra=event("clients-unlimited"),
                )
                return
            time.sleep(0.001)
        self._mine.register(self._stop_r, select.POLLIN)
        self._arm(0)
        self._mine.register(self._listening, select.POLLIN)
        self._is_new = True  # who came before
        self._thread.start()

    def close(self) -> None:
        """Leave the socket as it is; call it before libzmq closes it, since descriptors are used again."""
        self._leave()
        os.close(self._stop_r)
        os.close(self._stop_w)

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens at that socket next. Only `close` follows."""
        self._leave()
        if self._epoll >= 0:
            self._arm(0)

    def _leave(self) -> None:
        if self._thread.ident is not None and self._thread.is_alive():
            os.write(self._stop_w, b"x")
            self._thread.join()

    def _find(self) -> bool:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if str(link.readlink()) != "anon_inode:[eventpoll]":
                    continue
                for watched, events, data, _ in _WATCHED.findall(_watched_by(int(link.name))):
                    if _listens_to_tcp(int(watched)):
                        self._epoll, self._listening = int(link.name), int(watched)
                        self._event = _Event(int(events, 16), int(data, 16))
                        return True
        return False

    def _arm(self, events: int = select.EPOLLIN) -> None:
        self._event.events = events | select.EPOLLONESHOT
        if _LIBC.epoll_ctl(self._epoll, _EPOLL_CTL_MOD, self._listening, ctypes.byref(self._event)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def _serve(self) -> None:
        while True:
            ready = [descriptor for descriptor, _ in self._mine.poll(self._patience_ms())]
            if self._stop_r in ready:
                return
            # Each arming lets in one at most, so what was free at the last look bounds how many came since.
            if ready and self._room > 0:
                self._arm()
                self._room -= 1
                self._is_new = True
            if ready:
                time.sleep(ONE_S)
            is_due = time.monotonic() - self._looked_s > (SELDOM_S if self._room > 0 else FULL_S)
            if is_due or (self._is_new and (self._room <= 0 or not ready)):
                self._look()
            self._excess.look()
            self._stalls.look()

    def _patience_ms(self) -> float:
        """How long nobody need come until there is something to do."""
        own_s = SOON_S if self._is_new else math.inf if self._room > 0 else FULL_S
        return 1e3 * min(self._excess.next_s, self._stalls.next_s, own_s)

    def _look(self) -> None:
        """See who is there, hang up on those who are too many, and count how many may be let in until the next look."""
        self._looked_s, self._is_new = time.monotonic(), False
        self._arm(0)  # libzmq may not have used the last arming: nobody is to come in unseen
        try:
            watched = {
                int(descriptor): int(inode, 16) if inode else None
                for descriptor, _, _, inode in _WATCHED.findall(_watched_by(self._epoll))
                if int(descriptor) != self._listening
            }
            free = descriptors.free()
        except OSError:  # not one descriptor is left to look with
            self._room = 0
        else:
            self.connections.look(watched)
            elsewhere = self._elsewhere()
            clients = len(self.connections) + elsewhere
            places = min(self._limits.max_clients, clients + free)
            self._end_surplus(places)
            self._room = min(BATCH, self.connections.room(places, elsewhere))
            self._tell(self._room <= 0, clients)
        # Who waits there is no news while there is no room.
        self._mine.modify(self._listening, select.POLLIN if self._room > 0 else 0)

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


def _listens_to_tcp(descriptor: int) -> bool:
    """Whether it is a listening socket of tcp: ipc's is another epoll instance's."""
    try:
        with copied(descriptor) as probed:
            is_listening = probed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            return bool(is_listening) and probed.family != socket.AF_UNIX
    except OSError:  # no socket
        return False
