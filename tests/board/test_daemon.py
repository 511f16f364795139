"""The daemon serves with the board's TensorRT, and goes on when its engine host was killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jetsel.host_settings import HostSettings
from tests.board.conftest import Built
from tests.system.daemons import Daemon, Peer, drawn, encoded, launch, wait_until_ready
from tests.system.hosts import host_of
from tests.waiting import until

PICTURES = [encoded(drawn(seed)) for seed in range(4)]
LIMIT_S = 180.0  # a slow card holds TensorRT's libraries
CLOSE = 0.02  # of a probability, which half precision changes a little


@contextlib.contextmanager
def serving(folder: Path, backend: str, settings: HostSettings) -> Iterator[tuple[Daemon, Peer]]:
    """A daemon that is ready, and somebody who may ask it."""
    config = f'[models]\nonly = ["xs"]\nbackend = "{backend}"\n[host]\n'
    config += f"interpreter = {json.dumps(settings.interpreter)}\nengines = {json.dumps(str(settings.folder))}\n"
    daemon = launch(folder, config, name=backend)
    try:
        wait_until_ready(daemon)
        peer = Peer(daemon.endpoint)
        yield daemon, peer
        peer.close()
    finally:
        daemon.process.kill()
        daemon.process.wait(10)


def asked(peer: Peer) -> list[float]:
    """How sure it is of each picture; one that it may be asked again is asked again."""
    return [probability(peer, picture) for picture in PICTURES]


def probability(peer: Peer, picture: bytes) -> float:
    replies: list[dict[str, Any]] = []

    def is_answered() -> bool:
        replies.append(peer.classify(picture, model="xs"))
        return replies[-1]["type"] == "answer" or not replies[-1]["retry"]

    until(is_answered, LIMIT_S)
    return float(replies[-1]["probability"])


def test_it_answers_as_with_onnx_runtime_before_and_after_its_host_was_killed(
    built: Built, settings: HostSettings, tmp_path: Path
) -> None:
    built("fp16", "xs")
    with serving(tmp_path, "onnxruntime", settings) as (_, peer):
        expected = asked(peer)
    with serving(tmp_path, "tensorrt", settings) as (daemon, peer):
        assert asked(peer) == pytest.approx(expected, abs=CLOSE)
        first = host_of(daemon)
        os.kill(first, signal.SIGKILL)
        assert asked(peer) == pytest.approx(expected, abs=CLOSE)
        assert host_of(daemon) != first
