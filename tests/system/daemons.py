"""A real daemon, started as a process on a socket of its own, and a bare ZeroMQ peer to talk to it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import zmq

from tests.private import FOLDERS

START_LIMIT_S = 60.0  # a busy machine may be slow; how fast a start is belongs to the benchmarks


@dataclass
class Daemon:
    """A running `jetsel serve`."""

    process: subprocess.Popen[str]
    path: Path
    config: Path
    log: Path
    endpoint: str = field(init=False)

    def __post_init__(self) -> None:
        self.endpoint = f"ipc://{self.path}"

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


class Peer:
    """A DEALER or REQ socket that speaks the protocol frame by frame."""

    def __init__(self, endpoint: str, kind: int = zmq.DEALER) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(endpoint)

    def send(self, message: dict[str, Any] | bytes, *frames: bytes) -> None:
        head = message if isinstance(message, bytes) else json.dumps({"v": 1, "id": "t", **message}).encode()
        self.socket.send_multipart([head, *frames])

    def receive(self, timeout_s: float = 30.0) -> dict[str, Any]:
        assert self.socket.poll(int(timeout_s * 1e3)), "the daemon did not answer"
        found: dict[str, Any] = json.loads(self.socket.recv_multipart()[-1])
        return found

    def ask(self, message: dict[str, Any] | bytes, *frames: bytes) -> dict[str, Any]:
        self.send(message, *frames)
        return self.receive()

    def classify(self, image: bytes, **fields: Any) -> dict[str, Any]:
        return self.ask({"type": "classify", **fields}, image)

    def status(self) -> dict[str, Any]:
        return self.ask({"type": "status"})

    def close(self) -> None:
        self.socket.close()
        self.context.term()


Start = Callable[..., Daemon]
Connect = Callable[..., Peer]


def launch(
    folder: Path, config: str = "", *, name: str = "jetsel", prefix: Sequence[str] = (), **options: Any
) -> Daemon:
    """Start a daemon, by way of the command `prefix`; its socket and its log lie in `folder`.

    It reads no power unless `config` says so: what this machine has is no concern of most tests.
    """
    path = folder / f"{name}.sock"
    file = folder / f"{name}.toml"
    server = "" if "[server]" in config else "[server]\n"
    text = f"{server}{config}".replace("[server]\n", f'[server]\nendpoint = "ipc://{path}"\n', 1)
    file.write_text(text if "[power]" in text else f'{text}\n[power]\nsensor = "none"\n', encoding="utf-8")
    log = folder / f"{name}.log"
    environment = {**FOLDERS, **os.environ, "PYTHONUNBUFFERED": "1", **options.pop("env", {})}
    with log.open("w") as handle:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "jetsel", "serve", "--config", str(file)],
            stdout=handle,
            stderr=handle,
            text=True,
            env=environment,
            **options,
        )
    return Daemon(process, path, file, log)


def wait_until_ready(daemon: Daemon) -> None:
    """Ask for the status until the models are ready; fails with the daemon's log where it ended instead."""
    give_up = time.monotonic() + START_LIMIT_S
    while not daemon.path.exists():
        assert daemon.process.poll() is None, daemon.log.read_text()
        assert time.monotonic() < give_up, daemon.log.read_text()
        time.sleep(0.02)
    peer = Peer(daemon.endpoint)
    try:
        while peer.status().get("state") != "ready":  # a limit of the test's own may hold for this too
            assert daemon.process.poll() is None, daemon.log.read_text()
            assert time.monotonic() < give_up, daemon.log.read_text()
            time.sleep(0.02)
    finally:
        peer.close()


@contextlib.contextmanager
def serving(folder: Path, config: str = "", **options: Any) -> Iterator[Daemon]:
    """A daemon that is ready while the block lasts, and must then end well; see `launch`."""
    daemon = launch(folder, config, **options)
    try:
        wait_until_ready(daemon)
        yield daemon
        assert daemon.stop() == 0, daemon.log.read_text()
    finally:
        daemon.process.kill()
        daemon.process.wait(10)


def drawn(seed: int = 0, height: int = 120, width: int = 160) -> np.ndarray:
    """A picture with shapes and colours in it, the same for the same seed."""
    draw = np.random.default_rng(seed)
    picture = np.full((height, width, 3), draw.integers(0, 255, 3), np.uint8)
    for _ in range(8):
        centre = (int(draw.integers(0, width)), int(draw.integers(0, height)))
        colour = tuple(int(c) for c in draw.integers(0, 255, 3))
        cv2.circle(picture, centre, int(draw.integers(5, 40)), colour, -1)
    return cv2.GaussianBlur(picture, (5, 5), 0)


def encoded(picture: np.ndarray, kind: str = ".jpg") -> bytes:
    """The picture as a file of this kind."""
    good, data = cv2.imencode(kind, picture)
    assert good
    return data.tobytes()
