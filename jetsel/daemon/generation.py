"""What one reading of the configuration, the models and the calibrations gives; a reload builds the next one aside."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jetsel.config import Config
from jetsel.daemon.building import Photographs, build_at_start, on_tensorrt
from jetsel.daemon.family import ServedFamily, serve_family
from jetsel.daemon.memory import settle
from jetsel.engines import Backends
from jetsel.engines.building.child import PATIENCE
from jetsel.errors import ConfigError, UnknownFamilyError
from jetsel.events import event
from jetsel.image import Limits
from jetsel.policies.catalogue import check_own
from jetsel.zoo import model_folders, scan

log = logging.getLogger("jetsel.models")

LOAD_S = 300.0  # one model may take so long: an engine host's start, its hello, and a load, each twice (supervisor.py)

Samples = Callable[[Limits, int], Photographs]
Hear = Callable[[str, float], None]
"""Is told how far the loading is, in words, and within how many seconds the next word comes if nothing hangs."""


@dataclass(eq=False)
class Generation:
    """The families of one configuration; requests keep the one they were admitted under until they are answered."""

    config: Config
    families: dict[str, ServedFamily]
    default_family: str
    broken: list[str]
    limits: Limits
    workers: int
    ready: bool = False
    progress: str | None = None  # how far the loading is, in words
    hear: Hear = lambda *_: None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _requests: int = 0
    _retired: bool = False

    def enter(self) -> bool:
        """Count a request in; False where a reload has retired this generation meanwhile: ask its successor."""
        with self._changed:
            self._requests += not self._retired
            return not self._retired

    def leave(self) -> None:
        """Count an answered request out."""
        with self._changed:
            self._requests -= 1
            if self._retired:
                self._changed.notify_all()

    def retire(self, limit_s: float | None = None) -> int:
        """Let no request in any more, and wait until those that are in have been answered; return how many are left.

        limit_s: how long to wait at most, None for as long as it takes.
        """
        with self._changed:
            self._retired = True
            self._changed.wait_for(lambda: self._requests == 0, limit_s)
            return self._requests

    def build_engines(self, samples: Samples, stop: threading.Event) -> None:
        """Build the engines that the models lack, where the configuration says so; what fails is told when it loads.

        samples: gives the photographs that engines are compared on, for limits and the size that they are decoded to.
        """
        if not self.config.host.build_at_start:
            return

        def tell(number: int, missing: int, _: str) -> None:
            self._go_on(f"building {number} of {missing}", PATIENCE.silence_s)

        def alive() -> None:
            self._go_on(self.progress or "building", PATIENCE.silence_s)

        families = self.families.values()
        candidates = [
            candidate
            for family in families
            for candidate in on_tensorrt(family.name, family.models.values(), len(family.labels.names), self.config)
        ]
        if candidates:
            self._go_on("building", PATIENCE.silence_s)
            decode_px = max(family.decode_px for family in families)
            build_at_start(self.config, candidates, samples(self.limits, decode_px), tell, stop, alive)

    def load(self, backends: Backends, before: Generation | None = None, stop: threading.Event | None = None) -> None:
        """Load every model, taking over from `before` what is the same bytes on the same backend.

        stop: set, by any thread, to leave it at what is loaded by then.
        Raises ConfigError where not one model of the default family runs, and where one that serves in `before` has its
        files still, and does not load.
        """
        if before is not None:
            self._take_over(before)
        count = itertools.count(1)
        total = sum(len(family.models) for family in self.families.values())

        def tell() -> None:
            self._go_on(f"loading {next(count)} of {total}", LOAD_S)

        for family in self.families.values():
            family.load(self.config, self.workers, backends, tell, stop or threading.Event())
        self.progress = None
        if stop is not None and stop.is_set():
            return
        default = self.families[self.default_family]
        if all(lane.engine is None for lane in default.driver.lanes.values()):
            reasons = "; ".join(dict.fromkeys(str(lane.unavailable) for lane in default.driver.lanes.values()))
            raise ConfigError(f"no model of the default family {self.default_family} can run: {reasons}")
        if before is not None and (lost := self._losses(before)):
            raise ConfigError("; ".join(lost))
        for family in self.families.values():
            family.stand_in()
        settle()
        self.ready = True

    def _go_on(self, progress: str, patience_s: float) -> None:
        self.progress = progress
        self.hear(progress, patience_s)

    def close(self, *others: Generation) -> None:
        """Free the engines that none of these others has too."""
        kept = {
            id(lane.engine) for other in others for f in other.families.values() for lane in f.driver.lanes.values()
        }
        for family in self.families.values():
            for lane in family.driver.lanes.values():
                if lane.engine is not None and id(lane.engine) not in kept:
                    lane.engine.close()

    def family(self, name: str | None) -> ServedFamily:
        """The named family, or the default one; raises UnknownFamilyError."""
        wanted = name or self.default_family
        if wanted not in self.families:
            raise UnknownFamilyError(f"no family {wanted!r} is served: {', '.join(self.families)}")
        return self.families[wanted]

    def _losses(self, before: Generation) -> list[str]:
        return [
            f"model {model} of family {name} serves now, and does not load again: {lane.unavailable}"
            for name, family in self.families.items()
            if name in before.families
            for model, lane in family.driver.lanes.items()
            if lane.engine is None
            if (was := before.families[name].driver.lanes.get(model)) is not None and was.serves
        ]

    def _take_over(self, before: Generation) -> None:
        if (before.config.models.threads, before.workers) != (self.config.models.threads, self.workers):
            return  # every engine was made for these
        for name, family in self.families.items():
            known = before.families.get(name)
            if known is not None:
                family.take_over(known)


def limits_of(config: Config) -> Limits:
    """The largest image that is accepted, in serving as in calibration."""
    return Limits(int(config.server.max_image_mb * 1e6), int(config.server.max_image_megapixels * 1e6))


def build(config: Config, before: Generation | None = None) -> Generation:
    """Read the models' folders and put the families together; nothing is loaded yet.

    before: the generation that a reload replaces; a family keeps its calibration where the new one is refused.
    Raises ConfigError where nothing can be served, a name is unknown, or a policy mixes families.
    """
    folders = model_folders(config.models)
    zoo = scan(folders)
    broken = [f"{item.path}: {item.reason}" for item in zoo.broken]
    for item in zoo.broken:
        log.error("model left out: %s: %s", item.path, item.reason, extra=event("model-left-out", path=item.path))
    names = {name: [m.manifest.name for m in family.models] for name, family in zoo.families.items()}
    known_names = {model for models in names.values() for model in models}
    for key, named in (("only", config.models.only), ("backends", config.models.backends)):
        unknown = sorted(set(named) - known_names)
        if unknown:
            raise ConfigError(f"models.{key}: no folder has {', '.join(unknown)}; see: jetsel models list")
    wanted = set(config.models.only or [model for models in names.values() for model in models])
    served = {name: kept for name, models in names.items() if (kept := [m for m in models if m in wanted])}
    check_own(config.policies, served)
    if not served:
        raise ConfigError(
            f"models.paths: no model in {', '.join(map(str, folders)) or 'no folder'}; {'; '.join(broken)}"
        )
    default = default_family(config, list(served))
    known = before.families if before else {}
    return Generation(
        config=config,
        families={
            name: serve_family(zoo.families[name], config, is_default=name == default, before=known.get(name))
            for name in served
        },
        default_family=default,
        broken=broken,
        limits=limits_of(config),
        workers=config.server.workers or os.cpu_count() or 1,
    )


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
