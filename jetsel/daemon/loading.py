"""Load the models of a snapshot: at the start, with the engines that are to be built first, and for a reload."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from jetsel.daemon.building import Photographs, build_at_start, on_tensorrt
from jetsel.daemon.memory import settle
from jetsel.daemon.snapshot import Snapshot
from jetsel.engines import Backends
from jetsel.engines.building.build_host import LIMITS
from jetsel.errors import ConfigError, ShuttingDownError
from jetsel.image import Limits

LOAD_S = 300.0  # one model may take so long: an engine host's start, its hello, and a load, each twice (supervisor.py)

Samples = Callable[[Limits, int], Photographs]
"""Gives the photographs that engines are compared on, for limits and the size that they are decoded to."""
Tell = Callable[[str, float], None]
"""Called with the progress in words, and the seconds within which the next call comes if nothing hangs."""


def build_engines(snapshot: Snapshot, samples: Samples, tell: Tell, stop: threading.Event) -> None:
    """Build the engines that the models lack, where the configuration asks for it; a failure shows when it loads."""
    config, families = snapshot.config, snapshot.families.values()
    if not config.host.build_at_start:
        return
    candidates = [
        candidate
        for family in families
        for candidate in on_tensorrt(family.name, family.models.values(), len(family.labels.names), config)
    ]
    if not candidates:
        return
    progress = "building"
    tell(progress, LIMITS.silence_s)

    def begun(number: int, missing: int, _: str) -> None:
        nonlocal progress
        progress = f"building {number} of {missing}"
        tell(progress, LIMITS.silence_s)

    photographs = samples(snapshot.limits, max(family.decode_px for family in families))
    build_at_start(config, candidates, photographs, begun, stop, lambda: tell(progress, LIMITS.silence_s))


def load(
    snapshot: Snapshot, backends: Backends, tell: Tell, stop: threading.Event, before: Snapshot | None = None
) -> None:
    """Load every model, taking over from `before` what is the same bytes on the same backend.

    stop: set by any thread to end the loading. Raises ShuttingDownError then, and ConfigError where no model of the
    default family runs, or where one that serves in `before` has its files still and does not load.
    """
    families = snapshot.families
    if before is not None and before.config.models.threads == snapshot.config.models.threads:
        for name, family in families.items():
            if name in before.families:
                family.take_over(before.families[name])
    count, total = itertools.count(1), sum(len(family.models) for family in families.values())

    def next_model() -> None:
        if stop.is_set():
            raise ShuttingDownError("the daemon is stopping: it reads everything when it is back")
        tell(f"loading {next(count)} of {total}", LOAD_S)

    for family in families.values():
        family.load(snapshot.config, snapshot.workers, backends, next_model)
    default = families[snapshot.default_family].driver.queues.values()
    if all(queue.engine is None for queue in default):
        reasons = "; ".join(dict.fromkeys(str(queue.unavailable) for queue in default))
        raise ConfigError(f"no model of the default family {snapshot.default_family} can run: {reasons}")
    if before is not None and (lost := _lost(before, snapshot)):
        raise ConfigError("; ".join(lost))
    for family in families.values():
        family.stand_in()
    settle()


def _lost(before: Snapshot, following: Snapshot) -> list[str]:
    """The models that serve and would not any more, with the reason."""
    return [
        f"model {model} of family {name} serves now, and does not load again: {queue.unavailable}"
        for name, family in following.families.items()
        if name in before.families
        for model, queue in family.driver.queues.items()
        if queue.engine is None
        if (was := before.families[name].driver.queues.get(model)) is not None and was.serves
    ]
