"""A reload: the next snapshot is loaded beside the requests, then serves in place of the one before; what changed."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from jetsel.config import Config
from jetsel.daemon.current import Current
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.snapshot import Snapshot, Tell, load, read_snapshot
from jetsel.engines import Backends
from jetsel.errors import JetselError, ReloadFailedError, ShuttingDownError
from jetsel.events import event
from jetsel.logs import set_level
from jetsel.power.finding import check as check_power

log = logging.getLogger("jetsel.daemon")

AT_ONCE = ("budget_w", "battery_reserve_percent")
"""Of [power]: the rest of it waits for the next start."""

SWITCH_S = 0.0005
"""A request waits no longer for the interpreter while a reload works; CPython's own is 5 ms, which costs less."""


@dataclass(frozen=True)
class Reload:
    """Reads everything again and swaps the snapshot: taken as a whole, or refused as a whole.

    started: the configuration that the daemon began with. reread: gives that of now. stopping: ends a reload that is
    under way. tell: is given its progress.
    """

    started: Config
    current: Current
    backends: Backends
    metering: Metering
    reread: Callable[[], Config]
    stopping: threading.Event
    tell: Tell

    def __call__(self) -> list[str]:
        """Return what is different, for people; one thread at a time calls.

        Raises ReloadFailedError, and ShuttingDownError once the daemon stops: then nothing has changed.
        """
        before = self.current.snapshot
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            following = self._following(before)
        finally:
            sys.setswitchinterval(usual_s)
        config = following.config
        changed = changes(before, following)
        self.metering.serve(following.families, config)
        self.current.swap(following)
        for section in for_next_start(self.started, config):
            told = event("for-next-start", section=section)
            log.warning("changes under [%s] take effect at the next start", section, extra=told)
        set_level(config.log.level)
        return changed

    def _following(self, before: Snapshot) -> Snapshot:
        """Return the next snapshot, loaded."""
        following, is_loaded = None, False
        try:
            config = self.reread()
            check_power(config.power)
            following = read_snapshot(config, before)
            load(following, self.backends, self.tell, self.stopping, before)
            is_loaded = True
        except ShuttingDownError:
            raise
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration stays: {error}") from None
        finally:
            if following is not None and not is_loaded:
                following.close(*self.current.standing)
        return following


def changes(before: Snapshot, following: Snapshot) -> list[str]:
    """Name what a reload made different, then what is out of service since."""
    was, now = before.config, following.config
    changed = [f"[{key}]" for key in ("models", "policy", "log", "observe") if getattr(was, key) != getattr(now, key)]
    changed += [f"[power] {key}" for key in AT_ONCE if getattr(was.power, key) != getattr(now.power, key)]
    for name, family in following.families.items():
        was_served = before.families.get(name)
        changed += [f"family {name} added"] if was_served is None else _of_family(was_served, family)
    changed += [f"family {name} removed" for name in before.families if name not in following.families]
    known = _out_of_service(before)
    changed += [line for line in _out_of_service(following) if line not in known]
    for family in following.families.values():  # told by each reload
        changed += [
            f"weights of {name} are damaged, and it runs on while it is loaded: {why}"
            for name, why in family.damaged.items()
        ]
    return changed


def _of_family(known: ServedFamily, family: ServedFamily) -> list[str]:
    hashes, now = {name: model.manifest.identity for name, model in known.models.items()}, family.models
    changed = [f"model {name}" for name, model in now.items() if hashes.get(name) != model.manifest.identity]
    changed += [f"model {name} removed" for name in hashes if name not in now]
    if family.in_use.refused is not None:
        changed.append(f"calibration of {family.name} ({family.in_use})")
    elif (str(known.in_use), known.in_use.identity) != (str(family.in_use), family.in_use.identity):
        changed.append(f"calibration of {family.name}")
    return changed


def _out_of_service(snapshot: Snapshot) -> list[str]:
    """What stands in the models' folders and does not serve, and what serves in its place."""
    told = [f"left out: {line}" for line in snapshot.broken]
    for family in snapshot.families.values():
        queues = family.driver.queues.items()
        told += [f"model {n} of {family.name} is unavailable: {q.unavailable}" for n, q in queues if q.engine is None]
        told += family.instead
    return told


def for_next_start(started: Config, now: Config) -> list[str]:
    """Name the sections that differ from those the daemon was started with; AT_ONCE does not wait."""
    power = structs.replace(now.power, **{key: getattr(started.power, key) for key in AT_ONCE})
    pairs = {"server": (started.server, now.server), "host": (started.host, now.host), "power": (started.power, power)}
    return [section for section, (was, is_now) in pairs.items() if was != is_now]
