"""The daemon's life: open the socket, load, serve, reload, stop."""

from __future__ import annotations

import concurrent.futures
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2

from jetsel import __version__
from jetsel.base.config import Config
from jetsel.base.errors import JetselError
from jetsel.base.events import event
from jetsel.base.logs import log_start_failure, start_logging
from jetsel.base.notify import Notifier
from jetsel.base.process import raise_file_limit, return_large_blocks
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.first_start import begin_retiming
from jetsel.daemon.listener import listen
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Port
from jetsel.daemon.reload import READY
from jetsel.daemon.signals import Signals
from jetsel.daemon.snapshot import load_snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.power.finding import check_board
from jetsel.power.machine import Machine

log = logging.getLogger("jetsel.daemon")

QUIET_LOOKS = 3  # number of successive quiet looks: the kernel may still hold messages between two
LOOK_S = 0.01
PATIENCE_S = 2.0  # for a thread's current work, before the process ends
END_S = 10.0  # after the drain


def run(config: Config, reread: Callable[[], Config], signals: Signals, locate: Callable[[], Path | None]) -> int:
    """Serve until a signal stops the daemon; return the exit status, for `os._exit`.

    `os._exit` is needed because threads may still be at work, although every request has its reply: the interpreter and
    loaded libraries would wait for them, or crash. The kernel ends the engine host with this process, also if the
    process is killed. reread: reads the configuration again, for a reload. locate: returns its path, None without one.
    """
    start_logging(config.log.level)
    return_large_blocks()
    raise_file_limit()
    cv2.setNumThreads(1)  # OpenCV's threads would take the cores of other requests
    notifier = Notifier.from_environment()
    listener = None
    try:
        check_board(config.power)
        listener = listen(config.server)
        log.info("starting: jetsel %s", __version__, extra=event("starting", version=__version__, pid=os.getpid()))
        snapshot = read_snapshot(config)
        port = Port(listener, snapshot.limits.max_bytes, config.server)
        backends = Backends(config.host, port.wake)
        metering = Metering(config.power)
        metering.set_families(snapshot.families, config)
        metering.start()
        dispatcher = Dispatcher(snapshot, port, backends, metering, reread, notifier, locate)
        lifecycle = Lifecycle(dispatcher, port, signals, notifier, listener.is_passed, config.server.drain_s, locate)
        lifecycle.run(backends)
        return 0
    except JetselError as error:
        notifier.status(str(error))
        return log_start_failure(error)
    finally:
        notifier.close()
        if listener is not None:
            listener.close()


@dataclass(frozen=True)
class Lifecycle:
    """The life of the daemon from the start of its workers to their end, in the main thread.

    That thread computes nothing, so that signals never wait. is_passed: whether the service manager listens, so that
    clients who connect during a drain wait for the next daemon. drain_s: longest time for the requests left at a stop.
    locate: returns the path of the configuration file, None without one.
    """

    dispatcher: Dispatcher
    port: Port
    signals: Signals
    notifier: Notifier
    is_passed: bool
    drain_s: float
    locate: Callable[[], Path | None]

    def run(self, backends: Backends) -> None:
        """Load and serve until a signal stops the daemon, then answer accepted requests. Raises errors of loading."""
        self.dispatcher.workers.start()
        try:
            if self._load(backends):
                self._serve()
            self._drain()
        finally:
            given_up = self.dispatcher.give_up(PATIENCE_S)
            log.info("stopped; %d requests were not answered", given_up, extra=event("stopped", given_up=given_up))

    def _load(self, backends: Backends) -> bool:
        """Load every model in another thread; return whether that ended before a signal to stop."""
        began_s, snapshot, stop = time.monotonic(), self.dispatcher.current.snapshot, threading.Event()
        if self.signals.stops:
            return False
        loaded = concurrent.futures.ThreadPoolExecutor(1, "loading").submit(
            load_snapshot, snapshot, backends, self.dispatcher.progress, stop
        )
        loaded.add_done_callback(lambda _: self.signals.wake())
        while not loaded.done() and not self.signals.stops:
            self.signals.wait()
        if self.signals.stops:
            stop.set()
            concurrent.futures.wait([loaded], PATIENCE_S)
            return False
        loaded.result()
        self.dispatcher.begin_serving()
        took_s, endpoints = time.monotonic() - began_s, self.port.endpoints
        fields = event("ready", endpoint=endpoints, took_s=took_s)
        log.info("ready on %s after %.2f s", ", ".join(endpoints), took_s, extra=fields)
        return True

    def _serve(self) -> None:
        """Report that the daemon is ready, begin retiming if it is due, and wait for signals until one stops it."""
        self.notifier.ready(READY)
        snapshot = self.dispatcher.current.snapshot
        machine = Machine(snapshot.config.power.sysfs).facts().board.value
        begin_retiming(snapshot.families.values(), self.locate(), machine)
        while not self.signals.stops:
            if self.signals.take_hangup():
                self.dispatcher.reloads.request()  # without a reply
            self.signals.wait()

    def _drain(self) -> None:
        """Refuse new requests and wait until accepted ones are answered, at most drain_s or until a second signal."""
        if self.is_passed:
            self.port.shut()
        left, began_s = self.dispatcher.refuse_new(), time.monotonic()
        self.notifier.stopping(self.drain_s + END_S, "stopping: accepted requests are still answered")
        log.info("stopping: %d requests are left to answer", left, extra=event("shutting-down", count=left))
        quiet = 0
        while quiet < QUIET_LOOKS and time.monotonic() < began_s + self.drain_s and self.signals.stops < 2:
            self.signals.wait(LOOK_S)
            quiet = quiet + 1 if self.dispatcher.is_drained else 0
        if quiet == QUIET_LOOKS:
            fields = event("drained", count=left, took_s=time.monotonic() - began_s)
            log.info("all accepted requests are answered", extra=fields)
