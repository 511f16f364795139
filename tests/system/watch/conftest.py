"""Watchers, and a real MQTT broker on loopback, that end with the test that asked for them."""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.processes import ended, kill
from tests.system.watch.watchers import Watcher, launch
from tests.waiting import until


class Mosquitto:
    """Mosquitto, which may be stopped and started again."""

    def __init__(self, folder: Path, *lines: str) -> None:
        """lines: of its configuration, left out: it lets everybody in."""
        self._config = folder / "mosquitto.conf"
        self._lines, self.port = lines or ("allow_anonymous true",), 0
        self.start()

    def start(self) -> None:
        """Start it where it was before; at first on a port that nobody has: mosquitto cannot say which it was given."""
        while True:
            port = self.port or self._some_port()
            text = "\n".join([f"listener {port} 127.0.0.1", *self._lines])
            self._config.write_text(f"user root\npersistence false\n{text}\n")
            self.process = subprocess.Popen(["mosquitto", "-c", str(self._config)], stderr=subprocess.DEVNULL)
            if until(lambda port=port: self._listens(port) or self.process.poll() is not None):  # type: ignore[misc]
                if self.process.poll() is None:
                    self.port = port
                    return
                self.process.wait()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def _listens(self, port: int) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    def _some_port(self) -> int:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return int(one.getsockname()[1])


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
