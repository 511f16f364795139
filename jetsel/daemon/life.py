"""From the first thread to the last: load, tell that it is ready, reload when a signal says so, drain, and end.

The main thread does this, and nothing else: it computes nothing that could keep a signal waiting.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time

from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.loading import load
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.reload_requests import READY
from jetsel.daemon.signals import Signals
from jetsel.engines import Backends
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

QUIET_LOOKS = 3  # what the kernel still has of peers comes between two looks
LOOK_S = 0.01
PATIENCE_S = 2.0  # for a thread that is in the middle of something, before the process ends
END_S = 10.0  # after the drain


class Life:
    """One daemon's. Used by the main thread."""

    def __init__(
        self, dispatcher: Dispatcher, port: Port, signals: Signals, notifier: Notifier, *, is_passed: bool
    ) -> None:
        """is_passed: whether the service manager listens on; who connects while this one drains waits for the next."""
        self._dispatcher = dispatcher
        self._port = port
        self._signals = signals
        self._notifier = notifier
        self._is_passed = is_passed
        snapshot = dispatcher.current.snapshot
        self._drain_s = snapshot.config.server.drain_s

    def live(self, backends: Backends) -> None:
        """Load and serve until a signal says to stop, and answer everybody. Raises what loading raises."""
        self._dispatcher.workers.start()
        try:
            if self._load(backends):
                self._serve()
            self._drain()
        finally:
            given_up = self._dispatcher.give_up(PATIENCE_S)
            log.info("stopped; %d requests were given up", given_up, extra=event("stopped", given_up=given_up))

    def _load(self, backends: Backends) -> bool:
        """Load every model beside this thread; return whether that is done, and no signal came before it was."""
        began_s, snapshot, stop = time.monotonic(), self._dispatcher.current.snapshot, threading.Event()
        if self._signals.stops:
            return False
        loaded = concurrent.futures.ThreadPoolExecutor(1, "loading").submit(
            load, snapshot, backends, self._dispatcher.progress, stop
        )
        loaded.add_done_callback(lambda _: self._signals.wake())
        while not loaded.done() and not self._signals.stops:
            self._signals.wait()
        if self._signals.stops:
            stop.set()
            concurrent.futures.wait([loaded], PATIENCE_S)
            return False
        loaded.result()
        self._dispatcher.begin_serving()
        took_s, endpoints = time.monotonic() - began_s, self._port.endpoints
        told = event("ready", endpoint=endpoints, took_s=took_s)
        log.info("ready on %s after %.2f s", ", ".join(endpoints), took_s, extra=told)
        return True

    def _serve(self) -> None:
        self._notifier.ready(READY)
        while not self._signals.stops:
            if self._signals.take_hangup():
                self._dispatcher.reload()
            self._signals.wait()

    def _drain(self) -> None:
        """Answer what was accepted, within the limit, and not at all once a second signal came."""
        if self._is_passed:
            self._port.shut()
        left, began_s = self._dispatcher.refuse_new(), time.monotonic()
        self._notifier.stopping(self._drain_s + END_S, "stopping: what was accepted is answered")
        log.info("stopping: %d requests are left to answer", left, extra=event("shutting-down", count=left))
        quiet = 0
        while quiet < QUIET_LOOKS and time.monotonic() < began_s + self._drain_s and self._signals.stops < 2:
            self._signals.wait(LOOK_S)
            quiet = quiet + 1 if self._dispatcher.is_drained else 0
        if quiet == QUIET_LOOKS:
            told = event("drained", count=left, took_s=time.monotonic() - began_s)
            log.info("all that was accepted is answered", extra=told)
