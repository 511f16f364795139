"""One process of peers that flood a daemon: each sends as fast as its socket takes. Started by benchmarks.flood."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

import zmq

from jetsel.wire import PROTOCOL_VERSION, Answer, Classify, decode_reply, encode

QUEUED = 8  # messages that a peer's own socket holds, so that `sent` is what the daemon let through
READS_EVERY_S = 0.25
PAUSE_S = 0.001  # when no socket takes anything


def main() -> None:
    """Flood, then print what was sent and what came back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("image", type=Path)
    parser.add_argument("--peers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--reads", action="store_true", help="read replies now and then; else never")
    args = parser.parse_args()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    peers = []
    for _ in range(args.peers):
        peer = context.socket(zmq.DEALER)
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.SNDHWM, QUEUED)
        peer.setsockopt(zmq.RCVHWM, 1000 if args.reads else 1)  # who never reads stows nothing away either
        peer.connect(args.endpoint)
        peers.append(peer)
    outcomes = flood(peers, args.image.read_bytes(), args.seconds, args.reads)
    json.dump(outcomes, sys.stdout)
    context.destroy(linger=0)


def flood(peers: list[zmq.Socket[bytes]], image: bytes, seconds: float, reads: bool) -> Counter[str]:
    """Send until the time is over; return what was `sent` and the replies that were read, by outcome."""
    head, frame = encode(Classify(PROTOCOL_VERSION, "flood")), zmq.Frame(image, copy=False)
    outcomes: Counter[str] = Counter(sent=0)
    end_s = time.monotonic() + seconds
    next_read_s = time.monotonic() + READS_EVERY_S
    while time.monotonic() < end_s:
        sent = sum(_send(peer, head, frame) for peer in peers)
        outcomes["sent"] += sent
        if reads and time.monotonic() > next_read_s:
            for peer in peers:
                outcomes.update(_read(peer))
            next_read_s = time.monotonic() + READS_EVERY_S
        if sent == 0:
            time.sleep(PAUSE_S)
    return outcomes


def _send(peer: zmq.Socket[bytes], head: bytes, frame: zmq.Frame) -> bool:
    try:
        peer.send(head, zmq.SNDMORE | zmq.NOBLOCK)
    except zmq.Again:
        return False
    peer.send(frame, copy=False)  # a message that was begun is taken whole
    return True


def _read(peer: zmq.Socket[bytes]) -> Counter[str]:
    """Take every reply that has come."""
    found: Counter[str] = Counter()
    while peer.poll(0):
        reply = decode_reply(peer.recv_multipart()[-1])
        found["ok" if isinstance(reply, Answer) else getattr(reply, "code", "other")] += 1
    return found


if __name__ == "__main__":
    main()
