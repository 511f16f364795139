"""jetson-stats, which the owner may install: what its service says of the board, through its Python client jtop.

jetson-stats is AGPL: only its public interface is used, and only where [power] jtop = true asks for it. Its figures of
power are not: the rails are read by jetsel itself.
"""

from __future__ import annotations

import importlib
import multiprocessing
import queue
import threading
import time
from collections.abc import Mapping
from multiprocessing.managers import RemoteError
from typing import Any

from msgspec import Struct

from jetsel.base.errors import pip_install

INTERVAL_S = 1.0  # jtop's own default; the service answers all its clients at the rate of the fastest
RETRY_S = 30.0
SILENT_S = 5.0

_BROKEN = (OSError, EOFError, queue.Empty, RemoteError, multiprocessing.ProcessError)
"""What a client raises beside JtopException for a socket that is gone, an answer that does not come, other Pythons."""

_MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError)  # of a service before 4.2


class Seen(Struct, frozen=True, kw_only=True):
    """What the service said last; None: it does not tell. power_mode: "0 MAXN". gpu_load: 0 to 1."""

    version: str
    board: str | None
    l4t: str | None
    jetpack: str | None
    power_mode: str | None
    gpu_load: float | None


class Service:
    """Asks the service in a thread of its own, so that nobody who wants the facts waits for it."""

    def __init__(self, retry_s: float = RETRY_S, silent_s: float = SILENT_S) -> None:
        """retry_s: until it is tried again after a failure; silent_s: after which what it said no longer counts."""
        self._retry_s = retry_s
        self._silent_s = silent_s
        self._said: tuple[float, Seen] | None = None  # when, by time.monotonic()
        self._reason = "the service of jetson-stats has not answered yet"
        self._answered = threading.Event()  # or failed
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jtop", daemon=True)
        self._thread.start()

    def last(self, wait_s: float = 0.0) -> Seen | str:
        """Return what the service said last, or why nothing is known; wait for its first answer at most `wait_s`."""
        self._answered.wait(wait_s)
        said = self._said
        if said is None:
            return self._reason
        age_s = time.monotonic() - said[0]
        if age_s > self._silent_s:
            return f"the service of jetson-stats has said nothing for {age_s:.0f} s; see: systemctl status jtop"
        return said[1]

    def close(self) -> None:
        """Let go of the service; its thread ends with the next answer."""
        self._closed.set()

    def _work(self) -> None:
        try:
            module = importlib.import_module("jtop")
        except (ImportError, OSError) as error:
            self._failed(f"jetson-stats does not import: {error}; install it: {pip_install('jetson')}")
            return
        while not self._closed.is_set():
            try:
                self._listen(module)
                self._failed("the service of jetson-stats stopped answering; see: systemctl status jtop")
            except (module.JtopException, *_BROKEN, *_MISSHAPEN) as error:
                said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                self._failed(f"jetson-stats {module.__version__}: {said}; see: systemctl status jtop")
            self._closed.wait(self._retry_s)

    def _listen(self, module: Any) -> None:
        with module.jtop(interval=INTERVAL_S) as client:
            hardware = client.board["hardware"]
            while not self._closed.is_set() and client.ok():
                self._said = time.monotonic(), _seen(module, client, hardware)
                self._answered.set()

    def _failed(self, reason: str) -> None:
        self._said, self._reason = None, reason
        self._answered.set()


def _seen(module: Any, client: Any, hardware: Mapping[str, Any]) -> Seen:
    mode = client.nvpmodel
    gpus = list(client.gpu.values())
    integrated = [gpu for gpu in gpus if gpu["type"] == "integrated"] or gpus
    load_percent = integrated[0]["status"].get("load") if integrated else None
    return Seen(
        version=str(module.__version__),
        board=hardware.get("Model") or None,
        l4t=hardware.get("L4T") or None,
        jetpack=hardware.get("Jetpack") or None,
        power_mode=None if mode is None else f"{mode.id} {mode.name}",
        gpu_load=None if load_percent is None else float(load_percent) / 100,
    )
