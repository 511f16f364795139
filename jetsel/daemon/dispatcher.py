"""Builds the daemon's parts, answers requests that have no image, and has what the lifecycle (`run.py`) calls."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from jetsel.base.config import Config
from jetsel.base.errors import LoadingError, ShuttingDownError
from jetsel.base.events import event
from jetsel.base.notify import Notifier
from jetsel.base.process import trim_memory
from jetsel.daemon.admission import Admission
from jetsel.daemon.identity import check_admin, group_number
from jetsel.daemon.job import Job
from jetsel.daemon.metering import Metering
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.port import Message, Port
from jetsel.daemon.reload import Reloader, ReloadRequests
from jetsel.daemon.snapshot import CurrentSnapshot, Snapshot
from jetsel.daemon.status import StatusReporter
from jetsel.daemon.tally import Tally
from jetsel.daemon.watchdog import Probe, Watchdog
from jetsel.daemon.worker_pool import WorkerPool
from jetsel.engines import Backends, OnDemandEngine
from jetsel.runtime import ModelQueue
from jetsel.wire import Reload as ReloadRequest
from jetsel.wire import Status

log = logging.getLogger("jetsel.models")

IDLE_LOOK_S = 1.0  # interval between checks for idle models


def unload_idle(current: CurrentSnapshot, stopping: threading.Event) -> None:
    """Until the daemon stops, unload models that have been idle for models.idle_unload_s of the current snapshot."""
    while not stopping.wait(IDLE_LOOK_S):
        snapshot = current.snapshot
        idle_s = snapshot.config.models.idle_unload_s
        if idle_s is None:
            continue
        has_unloaded = False
        for family in snapshot.families.values():
            for model, queue in family.driver.queues.items():
                if _unload(queue, time.monotonic() - idle_s):
                    has_unloaded = True
                    fields = event("model-unloaded", model=model, family=family.name)
                    log.info(
                        "model %s of family %s is unloaded: idle for %g s", model, family.name, idle_s, extra=fields
                    )
        if has_unloaded:
            trim_memory()


def _unload(queue: ModelQueue, since_s: float) -> bool:
    """Unload a model that no request has used since since_s (time.monotonic()); return whether it was unloaded."""
    engine = queue.engine
    if not isinstance(engine, OnDemandEngine) or queue.waiting:
        return False
    if max(engine.loaded_s, queue.times.run_time.last_added_s) > since_s:  # the watchdog's probe does not count
        return False
    return engine.unload()


class Dispatcher:
    """Builds the daemon's parts, and answers `status` and `reload`; its pipeline answers classify requests."""

    def __init__(
        self,
        snapshot: Snapshot,
        port: Port,
        backends: Backends,
        metering: Metering,
        reread: Callable[[], Config],
        notifier: Notifier,
        locate: Callable[[], Path | None] = lambda: None,
    ) -> None:
        """reread: reads the configuration again, for a reload. locate: returns its path, None if it has no file."""
        self._port = port
        self._notifier = notifier
        self._tally = Tally()
        self._admission = Admission(snapshot.config.server, snapshot.workers)
        self._stopping = threading.Event()
        self.current = CurrentSnapshot(snapshot)
        self._probe = Probe(self.current, backends, self._begin_probe)
        self._watchdog = Watchdog(notifier.watchdog_s, notifier.watchdog, self._probe.ask, backends.waiting_threads)
        self.pipeline = Pipeline(
            self.current, self._admission, self._tally, metering, port.send, self._serve, self._probe.note_outcome
        )
        self.workers = WorkerPool(port, self.pipeline, self._watchdog, snapshot.workers)
        snapshot.timers.wake = self.workers.wake
        reload = Reloader(snapshot.config, self.current, backends, metering, reread, self._stopping, notifier.progress)
        self.reloads = ReloadRequests(reload, self.pipeline.reply, notifier, self._tally)
        self._reporter = StatusReporter(self.current, self._tally, self._admission, port, metering, backends, locate)
        self._admin_group = snapshot.config.server.admin_group
        if self._admin_group is not None:
            group_number("admin_group", self._admin_group)

    def _begin_probe(self, probe: Job) -> None:
        self.pipeline.take_in_probe(probe)
        self.workers.put_in_front(probe)

    def _serve(self, message: Message, request: Status | ReloadRequest) -> None:
        """Answer a status request, or queue a reload, which replies when it has ended, if the sender may reload now."""
        if isinstance(request, Status):
            self.pipeline.reply(message.route, self._reporter.reply(request.id, self.workers.waiting))
            return
        check_admin(message.sender, self._admin_group)
        if not self.current.is_ready:
            raise LoadingError("the models are still loading: reload when they have loaded")
        if self.current.is_closed:
            raise ShuttingDownError("the daemon is stopping: it reads all files at its next start")
        self.reloads.request((message.route, request))

    def progress(self, words: str, patience_s: float) -> None:
        """Note how far loading is, and ask the service manager to wait patience_s for the next such report."""
        self.current.progress = words
        self._notifier.progress(words, patience_s)

    def begin_serving(self) -> None:
        """Admit requests and feed the watchdog from now on; every model is loaded."""
        self.current.is_ready, self.current.progress = True, None
        self._watchdog.start()
        threading.Thread(target=unload_idle, args=(self.current, self._stopping), name="idle", daemon=True).start()

    def refuse_new(self) -> int:
        """Refuse new requests and reloads from now on; return the number of admitted requests that are not answered."""
        self.current.is_closed = True
        self._stopping.set()
        self.reloads.close()
        return self._admission.in_queue

    @property
    def is_drained(self) -> bool:
        """Whether every message received so far has been answered, as far as the daemon can see."""
        return self._admission.in_queue == 0 and self._port.is_quiet

    def give_up(self, patience_s: float) -> int:
        """Let threads end their jobs, for at most patience_s; then fail the other requests and return their number."""
        self.workers.stop(patience_s)
        given_up = self.pipeline.give_up()
        self.reloads.give_up(patience_s)
        return given_up
