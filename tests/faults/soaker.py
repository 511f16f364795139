"""One process of clients that ask without end and check every reply. Started by tests.faults.soak.

It prints, as one line of JSON, what was asked and answered; "wrong" names what was answered wrongly, twice or never.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from typing import Any

import msgspec
import zmq

from tests.faults.mix import Kind, mix
from tests.faults.zmtp import SlowPeer

WINDOW = 6  # requests under way of one client
PATIENCE_S = 120.0  # for a reply: what takes longer is lost
MOST_WRONG = 20  # that are told
LATE_READER_EVERY = 2000  # requests of a client, after which it does not read for a while
LATE_S = 1.0  # less than the daemon keeps a reply for
PROGRESS_EVERY_S = 0.5


class _Reply(msgspec.Struct):
    """What matters of a reply."""

    type: str
    id: str | None = None
    code: str | None = None
    label: str | None = None
    model: str | None = None


_decoder = msgspec.json.Decoder(_Reply)


class Asker:
    """One client's books: what is under way, and what came of it."""

    def __init__(self, seed: int, kinds: list[Kind], labels: dict[tuple[str, str], str]) -> None:
        self._draw = random.Random(seed)
        self._kinds = kinds
        self._weights = [kind.weight for kind in kinds]
        self._labels = labels
        self.under_way: dict[str | None, list[Kind]] = {}  # None: those whose id cannot be read
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.asked = self.answered = 0

    @property
    def waiting(self) -> int:
        """How many requests have no reply yet."""
        return self.asked - self.answered

    def next(self) -> list[bytes]:
        """Return the frames of another request."""
        (kind,) = self._draw.choices(self._kinds, self._weights)
        number = str(self.asked) if kind.has_id else None
        self.under_way.setdefault(number, []).append(kind)
        self.asked += 1
        return [kind.head.replace(b"%d", str(number).encode()), *kind.frames]

    def take(self, frame: bytes) -> None:
        """Enter a reply in the books."""
        reply = _decoder.decode(frame)
        self.answered += 1
        kinds = self.under_way.get(reply.id)
        if not kinds:
            self._note(f"a reply to {reply.id!r}, which was answered already or never asked")
            return
        kind = kinds.pop()
        if not kinds:
            del self.under_way[reply.id]
        outcome = "ok" if reply.type in ("answer", "status") else str(reply.code)
        self.outcomes[f"{kind.name}: {outcome}"] += 1
        if outcome not in kind.outcomes:
            self._note(f"{kind.name}: {outcome}")
        if reply.label is not None:
            first = self._labels.setdefault((kind.name, str(reply.model)), reply.label)
            if reply.label != first:
                self._note(f"{kind.name}: {reply.label} by {reply.model}, who said {first} before")

    def lost(self) -> None:
        """Note what will not be answered any more."""
        for number, kinds in self.under_way.items():
            for kind in kinds:
                self._note(f"{kind.name} ({number}) was never answered")

    def _note(self, what: str) -> None:
        if len(self.wrong) < MOST_WRONG:
            self.wrong.append(what)


def serve(endpoint: str, askers: list[Asker], stop: threading.Event, total: int) -> None:
    """Have these clients ask over sockets of their own until `total` is asked, then wait for the last replies."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    poller = zmq.Poller()
    peers: dict[zmq.Socket[bytes], Asker] = {}
    deaf: dict[zmq.Socket[bytes], float] = {}  # who does not read for now, and until when
    for asker in askers:
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(endpoint)
        poller.register(socket, zmq.POLLIN)
        peers[socket] = asker
        for _ in range(WINDOW):
            socket.send_multipart(asker.next())
    heard_s = told_s = time.monotonic()
    while any(asker.waiting for asker in askers) and time.monotonic() - heard_s < PATIENCE_S:
        for socket, _ in poller.poll(50):
            heard_s = time.monotonic()
            if _converse(socket, peers[socket], stop):
                deaf[socket] = heard_s + LATE_S
                poller.unregister(socket)
        now_s = time.monotonic()
        for socket in [socket for socket, until_s in deaf.items() if until_s < now_s]:
            del deaf[socket]
            poller.register(socket, zmq.POLLIN)
        if now_s - told_s > PROGRESS_EVERY_S:
            told_s = now_s
            print(sum(asker.answered for asker in askers), file=sys.stderr, flush=True)
        if sum(asker.asked for asker in askers) >= total:
            stop.set()
    stop.set()
    context.destroy(linger=0)


def _converse(socket: zmq.Socket[bytes], asker: Asker, stop: threading.Event) -> bool:
    """Take the replies that have come, and ask again for each; return whether this client now stops reading a while."""
    while socket.poll(0):
        asker.take(socket.recv_multipart()[-1])
        if not stop.is_set():
            socket.send_multipart(asker.next(), copy=False)
            if asker.asked % LATE_READER_EVERY == 0:
                return True
    return False


def dribble(path: str, asker: Asker, stop: threading.Event) -> None:
    """Have one client write its requests in small pieces, until the others are done."""
    peer = SlowPeer(path)
    while not stop.is_set():
        peer.send(asker.next())
        asker.take(peer.receive(PATIENCE_S))
    peer.close()


def main() -> None:
    """Ask, check, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("--clients", type=int, required=True, help="of which one writes slowly")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    kinds, labels = mix(), {}
    slow = [kind for kind in kinds if sum(map(len, kind.frames)) < 20_000]
    askers = [Asker(args.seed * 1000 + n, kinds, labels) for n in range(args.clients - 1)]
    slow_asker = Asker(args.seed * 1000 + 999, slow, labels)
    stop = threading.Event()
    thread = threading.Thread(target=dribble, args=(args.endpoint.removeprefix("ipc://"), slow_asker, stop))
    thread.start()
    serve(args.endpoint, askers, stop, args.requests)
    thread.join()
    everyone = [*askers, slow_asker]
    for asker in everyone:
        asker.lost()
    found: dict[str, Any] = {
        "asked": sum(asker.asked for asker in everyone),
        "answered": sum(asker.answered for asker in everyone),
        "slowly": slow_asker.answered,
        "outcomes": sum((asker.outcomes for asker in everyone), Counter()),
        "wrong": [line for asker in everyone for line in asker.wrong],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
