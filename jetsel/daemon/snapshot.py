"""What one reading of the configuration, the models and the calibrations gives, and how that is loaded."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError, ShuttingDownError, UnknownFamilyError
from jetsel.base.events import event
from jetsel.daemon.family import ServedFamily, serve_family, served_models
from jetsel.daemon.resources import settle
from jetsel.edge.models import open_edge
from jetsel.edge.runner import Edge
from jetsel.engines import Backends, Engine
from jetsel.image import Limits
from jetsel.runtime import Events
from jetsel.zoo import Zoo, model_folders, scan
from jetsel.zoo.folders import planned_families

log = logging.getLogger("jetsel.models")

LOAD_S = 300.0  # one model may take so long: an engine host's start, its hello, and a load, each twice (supervisor.py)

Tell = Callable[[str, float], None]
"""Called with the progress in words, and the seconds within which the next call comes if nothing hangs."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The families of one configuration, with their policies and drivers. It stays as it is once it is loaded.

    broken: what stands in the models' folders and cannot be served, with the reason.
    """

    config: Config
    families: dict[str, ServedFamily]
    default_family: str
    broken: list[str]
    limits: Limits
    workers: int
    events: Events  # of all drivers, those of snapshots before and after among them
    edge: Edge | None

    def family(self, name: str | None) -> ServedFamily:
        """The named family, or the default one; raises UnknownFamilyError."""
        wanted = name or self.default_family
        if wanted not in self.families:
            raise UnknownFamilyError(f"no family {wanted!r} is served: {', '.join(self.families)}")
        return self.families[wanted]

    @property
    def engines(self) -> list[Engine]:
        """The engines of all models that are loaded."""
        queues = [queue for family in self.families.values() for queue in family.driver.queues.values()]
        return [queue.engine for queue in queues if queue.engine is not None]

    def close(self, *others: Snapshot) -> None:
        """Free the engines, and the edge, that none of these others uses too."""
        kept = {id(engine) for other in others for engine in other.engines}
        for engine in self.engines:
            if id(engine) not in kept:
                engine.close()
        if self.edge is not None and all(other.edge is not self.edge for other in others):
            self.edge.close()


def read_snapshot(config: Config, before: Snapshot | None = None) -> Snapshot:
    """Read the models' folders and put the families together; nothing is loaded yet.

    before: the snapshot that a reload replaces; a family keeps its calibration where the new one is refused.
    Raises ConfigError where nothing can be served, a name is unknown, or a policy mixes families.
    """
    folders = model_folders(config.models)
    zoo = scan(folders)
    broken = [f"{item.path}: {item.reason}" for item in zoo.broken]
    for item in zoo.broken:
        log.error("model left out: %s: %s", item.path, item.reason, extra=event("model-left-out", path=item.path))
    served = _served(zoo, config)
    if not served:
        raise ConfigError(
            f"models.paths: no model in {', '.join(map(str, folders)) or 'no folder'}; {'; '.join(broken)}"
        )
    default = default_family(config, list(served))
    if default == "starter" and "imagenet" not in served and before is None:
        words = "the starter family answers: 100 classes; for ImageNet's 1,000: jetsel models pull efficientnet-lite"
        log.info(words, extra=event("starter-answers"))
    known = before.families if before else {}
    helped = config.edge.family or default
    if helped not in served:
        raise ConfigError(f"edge.family: there is no family {helped!r}; found: {', '.join(served)}")
    edge = before.edge if before is not None and before.config.edge == config.edge else None
    edge = edge or open_edge(config, zoo.families[helped])
    events = before.events if before else Events()
    families = {
        name: serve_family(
            zoo.families[name],
            config,
            events,
            is_default=name == default,
            before=known.get(name),
            edge=edge if name == helped else None,
        )
        for name in served
    }
    if before is not None:  # what [server] says waits for the next start
        return Snapshot(config, families, default, broken, before.limits, before.workers, events, edge)
    workers = config.server.workers or os.cpu_count() or 1
    return Snapshot(config, families, default, broken, limits_of(config), workers, events, edge)


def _served(zoo: Zoo, config: Config) -> dict[str, list[str]]:
    """The names of the models that the configuration has served, by family."""
    known = {model.manifest.name for family in zoo.families.values() for model in family.models}
    for key, named in (("only", config.models.only), ("backends", config.models.backends)):
        unknown = sorted(set(named) - known)
        if unknown:
            raise ConfigError(f"models.{key}: no folder has {', '.join(unknown)}; see: jetsel models list")
    return {name: list(models) for name, family in zoo.families.items() if (models := served_models(family, config))}


def limits_of(config: Config) -> Limits:
    """The largest image that is accepted, in serving as in calibration."""
    return Limits(int(config.server.max_image_mb * 1e6), int(config.server.max_image_megapixels * 1e6))


OURS = ("imagenet", "starter")  # what jetsel pulls and what it ships


def default_family(config: Config, families: Sequence[str]) -> str:
    """Return the family of whoever names none.

    That is the configuration's, or else the first of the fleet's plan, the only one, the only one that is the owner's,
    that of ImageNet, the starter family. Raises ConfigError where there is none of these.
    """
    wanted = config.models.default_family
    if wanted is not None:
        if wanted not in families:
            raise ConfigError(f"models.default_family: there is no family {wanted!r}; found: {', '.join(families)}")
        return wanted
    owners = [name for name in families if name not in OURS]
    preferred = [*planned_families(), *(owners if len(owners) == 1 else []), *OURS]
    found = [name for name in preferred if name in families]
    if found:
        return found[0]
    raise ConfigError(f"models.default_family: several families ({', '.join(families)}) and none named as the default")


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
