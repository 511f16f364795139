"""Watchers that end with the test that asked for them."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.processes import ended, kill
from tests.system.watch.brokers import Mosquitto
from tests.system.watch.watchers import Watcher, launch

Open = Callable[..., Watcher]
Broker = Callable[..., Mosquitto]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Open]:
    """Start watchers."""
    with ended(partial(launch, tmp_path), kill) as begin:
        yield begin


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Broker]:
    if shutil.which("mosquitto") is None:
        pytest.skip("needs mosquitto: apt-get install mosquitto")
    with ended(partial(Mosquitto, tmp_path), Mosquitto.stop) as begin:
        yield begin
