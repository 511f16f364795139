"""Who delivers nothing in time, or stops in a message, is hung up on; who only rests is not. With real sockets."""

from __future__ import annotations

import os
import socket

from jetsel.daemon.curve import peers
from jetsel.daemon.curve.connections import Connections
from jetsel.daemon.curve.stalls import LEAST_BYTES, LOOKS, Stalls
from tests.system.raw import hung_up
from tests.unit.daemon.clock import Clock
from tests.unit.daemon.curve.accepted import Rig, watched
from tests.waiting import until

TIMEOUT_S = 8.0


class Watch:
    """Looks at connections as the gate does."""

    def __init__(self, *accepted: socket.socket) -> None:
        self.clock = Clock()
        self.connections = Connections(None, self.clock)
        self._stalls = Stalls(TIMEOUT_S, self.connections, self.clock)
        self.connections.look(watched(*accepted))

    def delivered(self, accepted: socket.socket) -> None:
        self.connections.delivered(accepted.fileno())

    def pass_s(self, seconds: float) -> None:
        """Let so much time pass, with a look as often as there should be one."""
        step_s = TIMEOUT_S / LOOKS
        for _ in range(round(seconds / step_s)):
            self.clock.now_s += step_s
            self._stalls.look()

    @property
    def standing(self) -> int:
        return len(self.connections.standing())


def send(ours: socket.socket, accepted: socket.socket, count: int) -> None:
    """Send so many bytes, and wait until the other side's kernel has them."""
    before = peers.passed(accepted.fileno())
    assert before is not None
    ours.sendall(bytes(count))
    until(lambda: (now := peers.passed(accepted.fileno())) is not None and now.received == before.received + count)


def test_who_delivers_nothing_is_hung_up_on_when_its_time_is_over_and_not_before(rig: Rig) -> None:
    ours, accepted = rig.connect()
    watch = Watch(accepted)
    watch.pass_s(TIMEOUT_S)
    assert watch.standing == 1
    watch.pass_s(TIMEOUT_S / LOOKS)
    assert watch.standing == 0
    assert hung_up(ours)


def test_who_has_delivered_may_rest(rig: Rig) -> None:
    _, accepted = rig.connect()
    watch = Watch(accepted)
    watch.delivered(accepted)
    watch.pass_s(5 * TIMEOUT_S)
    assert watch.standing == 1


def test_who_stops_in_a_later_message_is_hung_up_on(rig: Rig) -> None:
    ours, accepted = rig.connect()
    watch = Watch(accepted)
    send(ours, accepted, 10)
    watch.delivered(accepted)
    watch.pass_s(TIMEOUT_S)
    send(ours, accepted, LEAST_BYTES)
    watch.pass_s(TIMEOUT_S)
    assert watch.standing == 1, "its time began when its bytes were seen"
    watch.pass_s(2 * TIMEOUT_S / LOOKS)
    assert watch.standing == 0
    assert hung_up(ours)


def test_a_heartbeat_is_no_message_that_was_begun(rig: Rig) -> None:
    ours, accepted = rig.connect()
    watch = Watch(accepted)
    watch.delivered(accepted)
    for _ in range(3 * LOOKS):
        send(ours, accepted, LEAST_BYTES // 2)
        watch.pass_s(TIMEOUT_S / LOOKS)
    assert watch.standing == 1


def test_who_ends_its_message_in_time_begins_anew(rig: Rig) -> None:
    ours, accepted = rig.connect()
    watch = Watch(accepted)
    watch.delivered(accepted)
    for _ in range(3):
        watch.pass_s(TIMEOUT_S / LOOKS)
        send(ours, accepted, LEAST_BYTES)
        watch.pass_s(TIMEOUT_S / 2)
        watch.delivered(accepted)
    assert watch.standing == 1


def test_another_connection_under_the_same_descriptor_has_delivered_nothing_yet(rig: Rig) -> None:
    _, accepted = rig.connect()
    watch = Watch(accepted)
    watch.delivered(accepted)
    ours, following = rig.connect()
    os.dup2(following.fileno(), accepted.fileno())
    watch.connections.look(watched(accepted))
    watch.pass_s(TIMEOUT_S + 2 * TIMEOUT_S / LOOKS)
    assert watch.standing == 0
    assert hung_up(ours)
