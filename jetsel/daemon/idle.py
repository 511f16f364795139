"""Models that have not run for long are unloaded: what they hold is free for others until a request needs them."""

from __future__ import annotations

import logging
import threading
import time

from jetsel.daemon.current import Current
from jetsel.daemon.memory import trim
from jetsel.engines import OnDemandEngine
from jetsel.events import event
from jetsel.runtime import ModelQueue

log = logging.getLogger("jetsel.models")

LOOK_S = 1.0


def unload_idle(current: Current, stopping: threading.Event) -> None:
    """Until the daemon stops, unload what has not run for models.idle_unload_s, as the snapshot that serves has it."""
    while not stopping.wait(LOOK_S):
        snapshot = current.snapshot
        idle_s = snapshot.config.models.idle_unload_s
        if idle_s is None:
            continue
        has_unloaded = False
        for family in snapshot.families.values():
            for model, queue in family.driver.queues.items():
                if _unload(queue, time.monotonic() - idle_s):
                    has_unloaded = True
                    told = event("model-unloaded", model=model, family=family.name)
                    log.info("model %s of family %s is unloaded: idle for %g s", model, family.name, idle_s, extra=told)
        if has_unloaded:
            trim()


def _unload(queue: ModelQueue, since_s: float) -> bool:
    """Unload a model for which nothing waits, and that nothing but the daemon's own request has used since then."""
    engine = queue.engine
    if not isinstance(engine, OnDemandEngine) or queue.waiting or max(engine.loaded_s, queue.estimate.seen_s) > since_s:
        return False
    return engine.unload()
