"""The process that is the simulator: serves the tree through FUSE, and takes orders on its standard input."""

from __future__ import annotations

import ctypes
import gc
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from jetsel.power.sensors.rail import RailError
from tests.simulator.agenda import Agenda
from tests.simulator.board import Board
from tests.simulator.following import TICK_NS, Following
from tests.simulator.fuse import Server
from tests.simulator.mounting import unmount
from tests.simulator.rails import FAULTS, Fault
from tests.simulator.setup import Answer, Fail, Follow, Order, Rails, Setup, Truth
from tests.simulator.sources import Level
from tests.simulator.tree import Tree

_PR_SET_TIMERSLACK = 29  # linux/prctl.h


def main() -> None:
    """Serve until standard input ends or the file system is unmounted."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1000, 0, 0, 0)  # what is due later leaves within microseconds
    setup = msgspec.json.decode(sys.stdin.buffer.readline(), type=Setup)
    try:
        process = _Process(setup)
    except (ArithmeticError, AttributeError, ImportError, OSError, RailError, TypeError, ValueError) as error:
        _say(Answer(refused=f"{type(error).__name__}: {error}"))
        return
    gc.freeze()  # nothing that is there now is ever let go
    _say(Answer())
    process.serve()
    unmount(Path(setup.mountpoint))  # whoever started this one may have been killed


class _Process:
    def __init__(self, setup: Setup) -> None:
        self._begin_ns = setup.begin_ns
        self._connection = setup.connection
        self._board = Board(setup)
        self._agenda = Agenda()
        tree = Tree(Path(setup.tree), self._board, self._level())
        self._server = Server(setup.connection, tree, self._agenda)

    def serve(self) -> None:
        orders = sys.stdin.fileno()
        while True:
            ready, _, _ = select.select([self._connection, orders], [], [], self._agenda.wait_s())
            self._agenda.run()
            if self._connection in ready and not self._server.handle():
                return
            if orders in ready:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                try:
                    _say(self._obey(msgspec.json.decode(line, type=Order)))
                except _RefusedError as refusal:
                    _say(Answer(refused=str(refusal)))

    def _level(self) -> Callable[[float], None] | None:
        source = self._board.source
        if not isinstance(source, Level):
            return None
        return lambda watts: source.set(watts, time.monotonic_ns() - self._begin_ns)

    def _obey(self, order: Order) -> Answer:
        match order:
            case Rails():
                return Answer(rails={rail.name: rail.share for rail in self._board.rails.values()})
            case Truth():
                return Answer(joules=self._truth_j(order))
            case Fail():
                self._fail(order)
            case Follow():
                self._follow(order.pid)
        return Answer()

    def _truth_j(self, order: Truth) -> float:
        if order.end_ns > time.monotonic_ns():
            raise _RefusedError("what will be is not known: end_ns lies in the future")
        self._check(order.rails or [])
        return self._board.energy_j(order.rails, order.end_ns) - self._board.energy_j(order.rails, order.begin_ns)

    def _fail(self, order: Fail) -> None:
        self._check(order.rails)
        if order.kind is not None and order.kind not in FAULTS:
            raise _RefusedError(f"there is no fault {order.kind}: there are {', '.join(FAULTS)}")
        for rail in self._board.struck(order.rails, order.kind):
            rail.suffer(None if order.kind is None else Fault(order.kind, order.seconds))

    def _follow(self, pid: int) -> None:
        source = self._board.source
        if not isinstance(source, Following):
            raise _RefusedError("only power=following(...) follows a process")
        started = source.active
        try:
            source.follow(pid, self._begin_ns)
        except ProcessLookupError as error:
            raise _RefusedError(str(error)) from None
        if not started:
            self._tick(source)

    def _tick(self, source: Following) -> None:
        source.tick()
        self._agenda.at(time.monotonic_ns() + TICK_NS, lambda: self._tick(source))

    def _check(self, names: list[str]) -> None:
        if unknown := sorted(set(names) - set(self._board.rails)):
            raise _RefusedError(f"there is no rail {', '.join(unknown)}: there are {', '.join(self._board.rails)}")


class _RefusedError(Exception):
    """An order that cannot be carried out; the text says why."""


def _say(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
