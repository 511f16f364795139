"""Watchers that end with the test that asked for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.watch.brokers import Mosquitto
from tests.system.watch.watchers import Watcher, launch

Open = Callable[..., Watcher]
Broker = Callable[..., Mosquitto]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Open]:
    """Start watchers."""
    running: list[Watcher] = []

    def begin(source: str | Path, endpoint: str, *options: str, **more: Any) -> Watcher:
        running.append(launch(tmp_path, str(source), endpoint, *options, **more))
        return running[-1]

    yield begin
    for watcher in running:
        watcher.process.kill()
        watcher.process.wait(10)


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Broker]:
    if shutil.which("mosquitto") is None:
        pytest.skip("needs mosquitto: apt-get install mosquitto")
    running: list[Mosquitto] = []

    def begin(*lines: str) -> Mosquitto:
        running.append(Mosquitto(tmp_path, *(lines or ("allow_anonymous true",))))
        return running[-1]

    yield begin
    for broker in running:
        broker.stop()
