"""The daemon serves with the board's TensorRT, and goes on when its engine host was killed."""

import json
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jetsel.base.host_settings import HostSettings
from tests.board.conftest import Built
from tests.system.daemons import Peer, drawn, encoded, serving
from tests.system.hosts import host_of
from tests.waiting import until

PICTURES = [encoded(drawn(seed)) for seed in range(4)]
LIMIT_S = 180.0  # a slow card holds TensorRT's libraries
CLOSE = 0.02  # of a probability, which half precision changes a little


def config(backend: str, settings: HostSettings) -> str:
    host = f"interpreter = {json.dumps(settings.interpreter)}\nengines = {json.dumps(str(settings.folder))}\n"
    return f'[models]\nonly = ["xs"]\nbackend = "{backend}"\n[host]\n{host}'


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
    with serving(tmp_path, config("onnxruntime", settings)) as daemon, closing(Peer(daemon.endpoint)) as peer:
        expected = asked(peer)
    with serving(tmp_path, config("tensorrt", settings)) as daemon, closing(Peer(daemon.endpoint)) as peer:
        assert asked(peer) == pytest.approx(expected, abs=CLOSE)
        first = host_of(daemon)
        os.kill(first, signal.SIGKILL)
        assert asked(peer) == pytest.approx(expected, abs=CLOSE)
        assert host_of(daemon) != first
