"""The listening sockets: who connects is let in where there is a place, in turns that leave time for others."""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from jetsel.config import Server as Limits
from jetsel.daemon.access.keyring import REVOKED
from jetsel.daemon.access.refusals import Refusals
from jetsel.daemon.identity import LOOPBACK, Identity, of_process
from jetsel.daemon.tcp import limit_silence, peer_address
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.mechanism import Mechanism, Null
from jetsel.daemon.zmtp.places import REVOKED_KEPT, STRANGER, Places
from jetsel.daemon.zmtp.strangers import network_of

ENTRIES = 64  # at each socket in one turn
_WANT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7), SO_PEERCRED)

AsksKey = Callable[[str], Mechanism]  # makes one for a peer at this address, which is to show a key


class Arrival(NamedTuple):
    """One that was let in. place: whose place it has until it leaves; see Places. network: where a stranger is from."""

    peer: socket.socket
    mechanism: Mechanism
    place: str
    network: str = ""


class Entrance:
    """For whoever holds the server's lock."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        limits: Limits,
        asks_key: AsksKey | None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """listening: ipc, tcp or both. asks_key: for who comes over tcp; None: nobody needs a key."""
        self._listening = listening
        self._timeout_s = limits.peer_timeout_s
        self._asks_key = asks_key
        self._refusals = Refusals(now)
        self._places = Places(limits, now)
        self._is_shut = False
        self.somebody_waits = True  # as far as is known; who came before we listened, too
        self.are_more_waiting = False  # than one turn lets in

    def let_in(self, make_room: Callable[[str], bool]) -> Iterator[Arrival]:
        """Yield some of those who wait.

        make_room: hangs up on a stranger for another one of this network; False where none is to go for it.
        """
        if self._is_shut:
            return
        self.somebody_waits = self.are_more_waiting = False
        are_all_in = True
        for listening in self._listening:
            are_all_in &= yield from self._let_in_at(listening, make_room)
        if are_all_in:
            self._places.nobody_waits()

    def settle(self, connection: Connection) -> bool:
        """Give a stranger that has shown a key the place of its owner; False where there is none."""
        name = connection.identity.name
        if not self._places.settle(name):
            return False
        connection.place = name
        return True

    def follow(self, connection: Connection) -> bool:
        """Give one whose key is another's now, or nobody's, the place of that one; False where it is to go."""
        name = connection.identity.name
        if name != connection.place:
            self._places.move(connection.place, name)
            connection.place = name
            self.somebody_waits = True  # perhaps for the place that it had
        return name != REVOKED or not self._places.are_over(REVOKED, REVOKED_KEPT)

    def leave(self, place: str) -> None:
        """Give a place back."""
        self._places.leave(place)
        self.somebody_waits = True  # perhaps for this one

    def refused(self, connection: Connection, reason: str) -> None:
        """Tell the log why one was hung up on that had not shown an allowed key."""
        self._refusals.note(connection.identity.name, reason)

    def look(self) -> None:
        """Tell the log how often those came again that it knows, when it is time to."""
        self._refusals.look()

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens at that socket next."""
        self._is_shut = True

    def _let_in_at(self, listening: socket.socket, make_room: Callable[[str], bool]) -> Generator[Arrival, None, bool]:
        """Yield those of one socket; return whether nobody waits there any more."""
        is_tcp = listening.family != socket.AF_UNIX
        for _ in range(ENTRIES):
            if not self._places.are_free(is_tcp=is_tcp):
                return self._is_nobody_left(listening)
            try:
                peer, name = listening.accept()
                peer.setblocking(False)
                arrival = self._met(peer, name, is_tcp=is_tcp)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in _WANT:  # the server looks again with its next sweep
                    return self._is_nobody_left(listening)
                continue  # it has gone meanwhile
            if self._places.enter(arrival.place) or (
                arrival.place == STRANGER and make_room(arrival.network) and self._places.enter(STRANGER)
            ):
                yield arrival
            else:
                if arrival.place == STRANGER:
                    self._refusals.note(arrival.mechanism.identity.name, "too many come from there and show no key")
                peer.close()
        self.somebody_waits = self.are_more_waiting = True
        return False

    def _is_nobody_left(self, listening: socket.socket) -> bool:
        """Whether nobody waits; tell the log where somebody does."""
        is_nobody_left = not select.select([listening], [], [], 0)[0]
        if not is_nobody_left:
            self._places.somebody_waits()
        return is_nobody_left

    def _met(self, peer: socket.socket, name: tuple[object, ...], *, is_tcp: bool) -> Arrival:
        if not is_tcp:
            raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, uid, gid = _CREDENTIALS.unpack(raw)
            user = of_process(uid, gid, pid)
            return Arrival(peer, Null(user), user.name)
        limit_silence(peer, self._timeout_s)
        if self._asks_key is None:
            return Arrival(peer, Null(Identity(LOOPBACK)), LOOPBACK)
        address = peer_address(name)
        return Arrival(peer, self._asks_key(address), STRANGER, network_of(address))
