"""The listening sockets: who connects is let in where there is a place, in turns that leave time for others."""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from jetsel.config import Server as Limits
from jetsel.daemon.identity import LOOPBACK, Identity, of_process
from jetsel.daemon.loopback import limit_silence
from jetsel.daemon.zmtp.places import Places

ENTRIES = 64  # at each socket in one turn
_WANT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7), SO_PEERCRED)


class Entrance:
    """For whoever holds the server's lock."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        limits: Limits,
        elsewhere: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """listening: ipc, tcp or both. elsewhere: how many connections other servers have."""
        self._listening = listening
        self._timeout_s = limits.peer_timeout_s
        self._places = Places(limits, elsewhere, now)
        self._is_shut = False
        self.somebody_waits = True  # as far as is known; who came before we listened, too
        self.are_more_waiting = False  # than one turn lets in

    def let_in(self) -> Iterator[tuple[socket.socket, Identity]]:
        """Yield some of those who wait, each with a place that is theirs until they `leave`."""
        if self._is_shut:
            return
        self.somebody_waits = self.are_more_waiting = False
        are_all_in = True
        for listening in self._listening:
            are_all_in &= yield from self._let_in_at(listening)
        if are_all_in:
            self._places.nobody_waits()

    def leave(self, identity: Identity) -> None:
        """Give a place back."""
        self._places.leave(identity)
        self.somebody_waits = True  # perhaps for this one

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens at that socket next."""
        self._is_shut = True

    def _let_in_at(self, listening: socket.socket) -> Generator[tuple[socket.socket, Identity], None, bool]:
        """Yield those of one socket; return whether nobody waits there any more."""
        is_tcp = listening.family != socket.AF_UNIX
        for _ in range(ENTRIES):
            if not self._places.are_free(is_tcp=is_tcp):
                return self._is_nobody_left(listening)
            try:
                peer, _ = listening.accept()
                peer.setblocking(False)
                identity = self._identify(peer, is_tcp=is_tcp)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in _WANT:  # the server looks again with its next sweep
                    return self._is_nobody_left(listening)
                continue  # it has gone meanwhile
            if self._places.enter(identity):
                yield peer, identity
            else:
                peer.close()
        self.somebody_waits = self.are_more_waiting = True
        return False

    def _is_nobody_left(self, listening: socket.socket) -> bool:
        """Whether nobody waits; tell the log where somebody does."""
        is_nobody_left = not select.select([listening], [], [], 0)[0]
        if not is_nobody_left:
            self._places.somebody_waits()
        return is_nobody_left

    def _identify(self, peer: socket.socket, *, is_tcp: bool) -> Identity:
        if is_tcp:
            limit_silence(peer, self._timeout_s)
            return Identity(LOOPBACK)
        raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, gid = _CREDENTIALS.unpack(raw)
        return of_process(uid, gid, pid)
