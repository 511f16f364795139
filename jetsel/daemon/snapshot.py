"""What one reading of the configuration, the models and the calibrations gives; a reload reads the next one."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

from jetsel.config import Config
from jetsel.daemon.family import ServedFamily, serve_family, served_models
from jetsel.engines import Engine
from jetsel.errors import ConfigError, UnknownFamilyError
from jetsel.events import event
from jetsel.image import Limits
from jetsel.zoo import Zoo, model_folders, scan

log = logging.getLogger("jetsel.models")


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
        """Free the engines that none of these others uses too."""
        kept = {id(engine) for other in others for engine in other.engines}
        for engine in self.engines:
            if id(engine) not in kept:
                engine.close()


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
    known = before.families if before else {}
    families = {
        name: serve_family(zoo.families[name], config, is_default=name == default, before=known.get(name))
        for name in served
    }
    if before is not None:  # what [server] says waits for the next start
        return Snapshot(config, families, default, broken, before.limits, before.workers)
    return Snapshot(config, families, default, broken, limits_of(config), config.server.workers or os.cpu_count() or 1)


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


def default_family(config: Config, families: Sequence[str]) -> str:
    """Return the family of whoever names none; raises ConfigError where the configuration does not settle it."""
    wanted = config.models.default_family
    if wanted is not None:
        if wanted not in families:
            raise ConfigError(f"models.default_family: there is no family {wanted!r}; found: {', '.join(families)}")
        return wanted
    if len(families) == 1:
        return families[0]
    if "starter" in families:
        return "starter"
    raise ConfigError(f"models.default_family: several families ({', '.join(families)}) and none named as the default")
