"""Snapshots of configuration, models and calibrations: the current one, and older ones that still have requests."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError, ShuttingDownError, UnknownFamilyError
from jetsel.base.events import event
from jetsel.base.process import freeze_and_trim, trim_memory
from jetsel.daemon.family import ServedFamily, serve_family
from jetsel.edge.models import open_edge
from jetsel.edge.runner import EdgeClient
from jetsel.engines import Backends, Engine
from jetsel.image import Limits
from jetsel.runtime import Timers
from jetsel.site.site import open_site

log = logging.getLogger("jetsel.models")

LOAD_S = 300.0  # largest load time: an engine host's start, its hello, and a load, each twice (supervisor.py)

OnProgress = Callable[[str, float], None]
"""Called with the progress of loading in words, and the seconds until the next call at the latest."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that is served under one configuration. It does not change once it is loaded: a reload makes another one.

    broken: sentences on files in the models' folders that cannot be served. limits: largest accepted image. workers:
    threads that may compute at a time. timers: shared by all snapshots. edge: client of the edge server, if one is set.
    """

    config: Config
    families: dict[str, ServedFamily]
    default_family: str
    broken: list[str]
    limits: Limits
    workers: int
    timers: Timers
    edge: EdgeClient | None

    def family(self, name: str | None) -> ServedFamily:
        """Return the named family, for None the default one; raises UnknownFamilyError if it is not served."""
        family_name = name or self.default_family
        if family_name not in self.families:
            raise UnknownFamilyError(f"no family {family_name!r} is served: {', '.join(self.families)}")
        return self.families[family_name]

    @property
    def engines(self) -> list[Engine]:
        """The engines of all loaded models."""
        queues = [queue for family in self.families.values() for queue in family.driver.queues.values()]
        return [queue.engine for queue in queues if queue.engine is not None]

    def close(self, *others: Snapshot) -> None:
        """Close the engines, and the edge client, that none of the other snapshots uses."""
        engines_in_use = {id(engine) for other in others for engine in other.engines}
        for engine in self.engines:
            if id(engine) not in engines_in_use:
                engine.close()
        if self.edge is not None and all(other.edge is not self.edge for other in others):
            self.edge.close()


def read_snapshot(config: Config, before: Snapshot | None = None) -> Snapshot:
    """Read the models' folders and return a snapshot of the configuration; no model is loaded yet.

    before: the snapshot that a reload replaces; a family keeps its calibration if the new one is refused. Raises
    ConfigError if nothing can be served, a name is unknown, or a policy mixes families.
    """
    site = open_site(config)
    for item in site.zoo.broken:
        log.error("model left out: %s: %s", item.path, item.reason, extra=event("model-left-out", path=item.path))
    in_use = {} if before is None else {name: family.in_use for name, family in before.families.items()}
    served = site.served(in_use)
    default, edge_family = served.default_family, served.edge_family
    if default == "starter" and "imagenet" not in served.families and before is None:
        words = "the starter family answers: 100 classes; for ImageNet's 1,000: jetsel models pull efficientnet-lite"
        log.info(words, extra=event("starter-answers"))
    edge = before.edge if before is not None and before.config.edge == config.edge else None
    edge = edge or open_edge(config, site.zoo.families[edge_family])
    timers = before.timers if before else Timers()
    families = {
        name: serve_family(family, config, timers, edge if name == edge_family else None)
        for name, family in served.families.items()
    }
    limits, workers = site.limits, config.server.workers or os.cpu_count() or 1
    if before is not None:  # changes in [server] wait for the next start
        limits, workers = before.limits, before.workers
    return Snapshot(config, families, default, site.broken, limits, workers, timers, edge)


def load_snapshot(
    snapshot: Snapshot, backends: Backends, report: OnProgress, stop: threading.Event, before: Snapshot | None = None
) -> None:
    """Load every model; take from `before`, the snapshot that a reload replaces, the engines of unchanged models.

    stop: set by another thread to end the loading; then ShuttingDownError is raised. Raises ConfigError if no model of
    the default family loads, or if a model that `before` serves is still on disk and does not load.
    """
    families = snapshot.families
    if before is not None and before.config.models.threads == snapshot.config.models.threads:
        for name, family in families.items():
            if name in before.families:
                family.keep_unchanged(before.families[name])
    count, total = itertools.count(1), sum(len(family.models) for family in families.values())

    def next_model() -> None:
        if stop.is_set():
            raise ShuttingDownError("the daemon is stopping: it reads all files at its next start")
        report(f"loading {next(count)} of {total}", LOAD_S)

    for family in families.values():
        family.load(snapshot.config, snapshot.workers, backends, next_model)
    default = families[snapshot.default_family].driver.queues.values()
    if all(queue.engine is None for queue in default):
        reasons = "; ".join(dict.fromkeys(str(queue.unavailable) for queue in default))
        raise ConfigError(f"no model of the default family {snapshot.default_family} can run: {reasons}")
    if before is not None and (lost := _lost_models(before, snapshot)):
        raise ConfigError("; ".join(lost))
    for family in families.values():
        family.replace_unavailable()
    freeze_and_trim()


def _lost_models(before: Snapshot, following: Snapshot) -> list[str]:
    """Return a sentence for each model that `before` serves and that did not load again."""
    return [
        f"model {model} of family {name} is in use, but cannot be loaded again: {queue.unavailable}"
        for name, family in following.families.items()
        if name in before.families
        for model, queue in family.driver.queues.items()
        if queue.engine is None
        if (old_queue := before.families[name].driver.queues.get(model)) is not None and old_queue.serves
    ]


class CurrentSnapshot:
    """Holds the current snapshot, and older ones that requests still use. Any thread may call.

    A request keeps the snapshot with which it began; an old snapshot is closed after its last request.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.open_snapshots: tuple[Snapshot, ...] = (snapshot,)  # newest first; not closed yet
        self.is_ready = False  # every model is loaded
        self.is_closed = False  # the daemon stops: only admitted requests are answered
        self.progress: str | None = None  # of loading at the start, in words
        self._lock = threading.Lock()
        self._requests: Counter[Snapshot] = Counter()

    @property
    def state(self) -> str:
        """State in `status`: loading, ready or stopping."""
        return "stopping" if self.is_closed else "ready" if self.is_ready else "loading"

    def enter(self, given: Snapshot | None = None) -> Snapshot:
        """Count a request and return its snapshot: the current one, or that of its message's first box (`given`)."""
        with self._lock:
            snapshot = given or self.snapshot
            self._requests[snapshot] += 1
            return snapshot

    def leave(self, snapshot: Snapshot) -> None:
        """Note that a request of this snapshot has ended; close an old snapshot after its last request."""
        with self._lock:
            self._requests[snapshot] -= 1
        if snapshot is not self.snapshot:
            self._free_unused()

    def swap(self, following: Snapshot) -> None:
        """Make this the snapshot of new requests."""
        with self._lock:
            self.open_snapshots = (following, *self.open_snapshots)
            self.snapshot = following
        self._free_unused()

    def _free_unused(self) -> None:
        """Close old snapshots without requests, and give their memory back to the kernel."""
        with self._lock:
            unused = [old for old in self.open_snapshots[1:] if not self._requests[old]]
            self.open_snapshots = tuple(snapshot for snapshot in self.open_snapshots if snapshot not in unused)
            for old in unused:
                del self._requests[old]
        for old in unused:
            old.close(*self.open_snapshots)
        if unused:
            trim_memory()
