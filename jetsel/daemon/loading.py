"""Load the models of a snapshot: at the start, and for a reload."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from jetsel.daemon.memory import settle
from jetsel.daemon.snapshot import Snapshot
from jetsel.engines import Backends
from jetsel.errors import ConfigError, ShuttingDownError

LOAD_S = 300.0  # one model may take so long: an engine host's start, its hello, and a load, each twice (supervisor.py)

Tell = Callable[[str, float], None]
"""Called with the progress in words, and the seconds within which the next call comes if nothing hangs."""


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
