"""A link to another network namespace with delay, jitter, loss and a bandwidth, which may be cut: a pair of TUNs.

netem would do the same, and is not in every kernel. Packets are carried over by a process of its own
(`python -m benchmarks.link`), so that no other work delays them.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
HERE, THERE = "10.77.0.1", "10.77.0.2"
NAMESPACE = "jetsel-edge"
MOST_QUEUED_BYTES = 256 * 1024  # behind the bandwidth, each way; more is dropped, as a router does
MOST_PACKET_BYTES = 65_536


@dataclass(frozen=True)
class Quality:
    """Of each way: delay normal, clipped at 0; loss as a share of packets. is_cut: nothing gets through."""

    delay_ms: float = 20.0
    jitter_ms: float = 10.0
    loss: float = 0.01
    megabits_per_s: float = 20.0
    is_cut: bool = False


class Link:
    """A link that is up."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def become(self, quality: Quality) -> None:
        """Be of this quality from now on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(quality)) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "so\n"


@contextlib.contextmanager
def link(quality: Quality, seed: int = 2020) -> Iterator[Link]:
    """Open a link from HERE to THERE in NAMESPACE, where `there` runs commands. It needs root."""
    command = [sys.executable, "-m", "benchmarks.link", str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        opened = Link(process)
        opened.become(quality)  # outside: where another run has the devices, the namespace is that run's
        try:
            yield opened
        finally:
            process.kill()
            subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def there(command: Sequence[str]) -> list[str]:
    """Return the command as it runs on the other side of the link."""
    return ["ip", "netns", "exec", NAMESPACE, *command]


def _tun(name: str) -> int:
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return opened


def _addressed(device: str, address: str, *prefix: str) -> None:
    for words in (f"ip addr add {address}/24 dev {device}", f"ip link set {device} up"):
        subprocess.run([*prefix, *words.split()], check=True)


class _Way:
    """One direction: packets that wait for the bandwidth, then for their delay. Order is kept, as on a real path."""

    def __init__(self, out: int, chance: random.Random) -> None:
        self._out = out
        self._chance = chance
        self._free_s = 0.0  # when the bandwidth has room for the next
        self._last_s = 0.0
        self.due: list[tuple[float, int, bytes]] = []
        self._count = 0

    def take(self, packet: bytes, quality: Quality, now_s: float) -> None:
        begins_s = max(now_s, self._free_s)
        bytes_per_s = quality.megabits_per_s * 125_000
        queued_bytes = (begins_s - now_s) * bytes_per_s
        if quality.is_cut or queued_bytes > MOST_QUEUED_BYTES or self._chance.random() < quality.loss:
            return
        self._free_s = begins_s + len(packet) / bytes_per_s
        delay_s = max(0.0, self._chance.gauss(quality.delay_ms, quality.jitter_ms)) / 1e3
        self._last_s = max(self._last_s, self._free_s + delay_s)
        self._count += 1
        heapq.heappush(self.due, (self._last_s, self._count, packet))

    def deliver(self, now_s: float, quality: Quality) -> None:
        while self.due and self.due[0][0] <= now_s:
            packet = heapq.heappop(self.due)[2]
            if not quality.is_cut:
                with contextlib.suppress(OSError):  # the device is full: lost
                    os.write(self._out, packet)


def _main(seed: int) -> None:
    here, far = _tun("jetsel-here"), _tun("jetsel-there")
    # A run that was killed leaves its namespace; no other run lives, since the devices above were free.
    subprocess.run(["ip", "netns", "del", NAMESPACE], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    subprocess.run(["ip", "link", "set", "jetsel-there", "netns", NAMESPACE], check=True)
    _addressed("jetsel-here", HERE)
    _addressed("jetsel-there", THERE, "ip", "netns", "exec", NAMESPACE)
    subprocess.run(there(["ip", "link", "set", "lo", "up"]), check=True)
    chance, quality = random.Random(seed), Quality()
    ways = {here: _Way(far, chance), far: _Way(here, chance)}
    while True:
        soonest_s = min((way.due[0][0] for way in ways.values() if way.due), default=None)
        wait_s = None if soonest_s is None else max(0.0, soonest_s - time.monotonic())
        ready, _, _ = select.select([here, far, sys.stdin], [], [], wait_s)
        now_s = time.monotonic()
        for opened in ready:
            if opened is sys.stdin:
                line = sys.stdin.readline()
                if not line:
                    return
                quality = Quality(**json.loads(line))
                print("so", flush=True)
            else:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        ways[opened].take(os.read(opened, MOST_PACKET_BYTES), quality, now_s)
        for way in ways.values():
            way.deliver(time.monotonic(), quality)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
