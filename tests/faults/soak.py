"""Mixed requests from many clients, valid, invalid and huge: each is answered once and rightly, memory stays flat."""

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import zmq

from tests.processes import Held, held
from tests.system.daemons import Daemon, Peer, drawn, encoded
from tests.unit.image.files import png
from tests.waiting import LIMIT_S, until

WINDOW = 6  # requests under way of one client
LOOK_EVERY = 500  # replies between two looks at the daemon's memory
REFUSALS_AT_ANY_TIME = frozenset({"busy", "over-limit"})


@dataclass(frozen=True)
class Kind:
    """One kind of request. head: JSON with %d where its number goes, none where its id cannot be read.

    outcomes: "ok" or error codes, any of which is right.
    """

    name: str
    weight: float
    head: bytes
    frames: tuple[bytes, ...]
    outcomes: frozenset[str]

    @property
    def has_id(self) -> bool:
        """Whether the daemon can tell whose request it is."""
        return b"%d" in self.head


def mix() -> list[Kind]:
    """Return the kinds of requests, some of which are rare."""
    valid = [
        _kind(f"photograph {seed}, {model}", 20, f'"model":"{model}"', encoded(drawn(seed)))
        for seed, model in enumerate(("xs", "xs", "s", "xs"))
    ]
    small = encoded(drawn(9), ".png")
    return [
        *valid,
        _kind("cascade", 2, '"policy":"cascade"', encoded(drawn(5))),
        _kind("explained", 2, '"model":"xs","explain":true,"top_k":100', small),
        _kind("a deadline that is hardly met", 2, '"model":"s","deadline_ms":3.0', small, "ok", "deadline"),
        _kind("status", 1, "", kind="status"),
        _kind("no such kind", 1, "", outcome="unknown-kind", kind="dance"),
        _kind("a status with an image", 1, "", small, "bad-request", kind="status"),
        _kind("no JSON", 2, "", small, "bad-request", head=b"\xff{no json"),
        _kind("no such field", 2, '"modle":"xs"', small, "bad-request"),
        _kind("another version", 1, "", small, "unsupported-version", version=2),
        _kind("no image", 1, "", outcome="bad-request"),
        _kind("no such model", 2, '"model":"giant"', small, "unknown-model"),
        _kind("half a JPEG", 3, '"model":"xs"', encoded(drawn(6))[:-400], "bad-image"),
        _kind("noise", 2, '"model":"xs"', random.Random(0).randbytes(2000), "bad-image"),
        _kind("a bomb", 1, '"model":"xs"', png(100_000, 100_000, 8, 2, b""), "image-too-large"),
        _kind("12 megapixels", 0.2, '"model":"xs"', encoded(drawn(7, 3000, 4000))),
        _kind("3 MB of PNG", 0.2, '"model":"xs"', encoded(drawn(8, 1000, 1000), ".png")),
        _kind("past the limit in bytes", 0.02, '"model":"xs"', bytes(16_030_000), "image-too-large"),
    ]


def _kind(
    name: str,
    weight: float,
    fields: str,
    image: bytes | None = None,
    outcome: str = "ok",
    *more: str,
    kind: str = "classify",
    version: int = 1,
    head: bytes | None = None,
) -> Kind:
    rest = f",{fields}" if fields else ""
    written = head or f'{{"v":{version},"type":"{kind}","id":"%d"{rest}}}'.encode()
    frames = () if image is None else (image,)
    return Kind(name, weight, written, frames, REFUSALS_AT_ANY_TIME | {outcome, *more})


@dataclass
class Soaked:
    """What a soak showed. memory_mb: in the order of time."""

    asked: int = 0
    answered: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    labels: dict[tuple[str, str], str] = field(default_factory=dict)  # by kind and model: every answer is to be this
    held: list[Held] = field(default_factory=list)  # before and after
    took_s: float = 0.0


class Client(Peer):
    """One client, and what it has under way; None: those whose id cannot be read."""

    def __init__(self, endpoint: str, seed: int, found: Soaked) -> None:
        super().__init__(endpoint)
        self._draw = random.Random(seed)
        self._found = found
        self._kinds = mix()
        self._asked = 0
        self.under_way: dict[str | None, list[Kind]] = {}

    def send_another(self) -> None:
        """Send a request of any kind."""
        (kind,) = self._draw.choices(self._kinds, [kind.weight for kind in self._kinds])
        number = str(self._asked) if kind.has_id else None
        self.under_way.setdefault(number, []).append(kind)
        self._asked += 1
        self._found.asked += 1
        self.socket.send_multipart([kind.head.replace(b"%d", str(number).encode()), *kind.frames], copy=False)

    def take(self) -> None:
        """Take one reply and compare it with its request."""
        reply, found = json.loads(self.socket.recv_multipart()[-1]), self._found
        found.answered += 1
        kinds = self.under_way.get(reply["id"])
        if not kinds:
            found.wrong.append(f"a reply to {reply['id']!r}, which was answered already or never asked")
            return
        kind = kinds.pop()
        outcome = "ok" if reply["type"] in ("answer", "status") else reply["code"]
        found.outcomes[f"{kind.name}: {outcome}"] += 1
        if outcome not in kind.outcomes:
            found.wrong.append(f"{kind.name}: {outcome}")
        if "label" in reply:
            said, model = reply["label"], reply["model"]
            first = found.labels.setdefault((kind.name, model), said)
            if said != first:
                found.wrong.append(f"{kind.name}: {said} by {model}, who said {first} before")


def soak(daemon: Daemon, requests: int, clients: int) -> Soaked:
    """Let the clients loose on a ready daemon, and watch it."""
    found, pid = Soaked(), daemon.process.pid
    found.held.append(held(pid))
    poller, peers = zmq.Poller(), {}
    for seed in range(clients):
        client = Client(daemon.endpoint, seed, found)
        peers[client.socket] = client
        poller.register(client.socket, zmq.POLLIN)
        for _ in range(WINDOW):
            client.send_another()
    began_s = time.monotonic()
    while found.answered < found.asked and (ready := poller.poll(LIMIT_S * 1e3)):
        for socket, _ in ready:
            peers[socket].take()
            if found.asked < requests:
                peers[socket].send_another()
            if found.answered % LOOK_EVERY == 0:
                found.memory_mb.append(held(pid).resident_mb)
    found.took_s = time.monotonic() - began_s
    for client in peers.values():
        found.wrong += [f"{kind.name} was never answered" for kinds in client.under_way.values() for kind in kinds]
        client.close()
    until(lambda: held(pid).descriptors <= found.held[0].descriptors)
    found.held.append(held(pid))
    return found
