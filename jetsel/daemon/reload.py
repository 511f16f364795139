"""Reloads, one at a time, on request or SIGHUP: a new snapshot is loaded beside the old one and replaces it whole."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from jetsel.base.config import Config
from jetsel.base.errors import InternalError, JetselError, ReloadFailedError, ShuttingDownError
from jetsel.base.events import event, run_about
from jetsel.base.logs import set_level
from jetsel.base.notify import Notifier
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Route
from jetsel.daemon.snapshot import CurrentSnapshot, OnProgress, Snapshot, load_snapshot, read_snapshot
from jetsel.daemon.tally import Tally
from jetsel.engines import Backends
from jetsel.power.finding import check_board as check_power
from jetsel.wire import PROTOCOL_VERSION, Reloaded, Reply, failure
from jetsel.wire import Reload as ReloadRequest

log = logging.getLogger("jetsel.daemon")

SWITCH_S = 0.0005
"""Interpreter switch interval during a reload, so that requests wait less; CPython's default of 5 ms costs less."""


@dataclass(frozen=True)
class Reloader:
    """Reads configuration, models and calibrations again and replaces the snapshot, completely or not at all.

    started: the configuration at the daemon's start. reread: reads the current one. stopping: set by the daemon to end
    a reload under way.
    """

    started: Config
    current: CurrentSnapshot
    backends: Backends
    metering: Metering
    reread: Callable[[], Config]
    stopping: threading.Event
    report_progress: OnProgress

    def __call__(self) -> list[str]:
        """Reload and return what changed, in words; only one thread at a time may call.

        Raises ReloadFailedError, or ShuttingDownError if the daemon stops; then nothing has changed.
        """
        before = self.current.snapshot
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            following = self._load_snapshot(before)
        finally:
            sys.setswitchinterval(usual_s)
        config = following.config
        changed = changes(before, following)
        self.metering.set_families(following.families, config)
        self.current.swap(following)
        power = structs.replace(config.power, budget_w=self.started.power.budget_w)  # the budget does not wait
        for section, now in {"server": config.server, "host": config.host, "power": power}.items():
            if now != getattr(self.started, section):
                fields = event("for-next-start", section=section)
                log.warning("changes under [%s] take effect at the next start", section, extra=fields)
        set_level(config.log.level)
        return changed

    def _load_snapshot(self, before: Snapshot) -> Snapshot:
        """Return a new snapshot with all models loaded; close it if that fails. Raises as `__call__`."""
        following, is_loaded = None, False
        try:
            config = self.reread()
            check_power(config.power)
            following = read_snapshot(config, before)
            load_snapshot(following, self.backends, self.report_progress, self.stopping, before)
            is_loaded = True
        except ShuttingDownError:
            raise
        except JetselError as error:
            raise ReloadFailedError(f"the running configuration remains in use: {error}") from None
        finally:
            if following is not None and not is_loaded:
                following.close(*self.current.open_snapshots)
        return following


def changes(before: Snapshot, following: Snapshot) -> list[str]:
    """Return in words what a reload changed, what is out of service since, and every damaged model that is served."""
    old, new = before.config, following.config
    changed = [f"[{key}]" for key in ("models", "policy", "log", "observe") if getattr(old, key) != getattr(new, key)]
    changed += ["[power] budget_w"] if old.power.budget_w != new.power.budget_w else []
    for name, family in following.families.items():
        old_family = before.families.get(name)
        changed += [f"family {name} added"] if old_family is None else _family_changes(old_family, family)
    changed += [f"family {name} removed" for name in before.families if name not in following.families]
    out_of_service = _out_of_service(before)
    changed += [line for line in _out_of_service(following) if line not in out_of_service]
    for family in following.families.values():  # reported at every reload
        changed += [
            f"weights of {name} are damaged; the model is served until it is unloaded: {why}"
            for name, why in family.problems.damage.items()
        ]
    return changed


def _family_changes(old_family: ServedFamily, family: ServedFamily) -> list[str]:
    """Return a family's models that changed or are gone, and its calibration if that changed or is rejected."""
    hashes = {name: model.manifest.identity for name, model in old_family.models.items()}
    changed = [f"model {name}" for name, model in family.models.items() if hashes.get(name) != model.manifest.identity]
    changed += [f"model {name} removed" for name in hashes if name not in family.models]
    if family.in_use.refused is not None:
        changed.append(f"calibration of {family.name} ({family.in_use})")
    elif (str(old_family.in_use), old_family.in_use.identity) != (str(family.in_use), family.in_use.identity):
        changed.append(f"calibration of {family.name}")
    return changed


def _out_of_service(snapshot: Snapshot) -> list[str]:
    """Return sentences on files and models that are not served, and on what is served instead."""
    lines = [f"left out: {line}" for line in snapshot.broken]
    for family in snapshot.families.values():
        queues = family.driver.queues.items()
        lines += [f"model {n} of {family.name} is unavailable: {q.unavailable}" for n, q in queues if q.engine is None]
        lines += family.problems.stand_ins
    return lines


READY = "ready"  # status for the service manager

RoutedReload = tuple[Route, ReloadRequest]  # a reload request, and the route of its reply


class ReloadRequests:
    """Queues reloads for its own thread. Requests that arrive during a reload share the next. Any thread may call."""

    def __init__(
        self, reload: Callable[[], list[str]], reply: Callable[[Route, Reply], None], notifier: Notifier, tally: Tally
    ) -> None:
        """reload: reloads, and returns what changed or raises a JetselError. reply: sends a reply to a client."""
        self._reload = reload
        self._reply = reply
        self._notifier = notifier
        self._tally = tally
        self._waiting: queue.SimpleQueue[RoutedReload | None] = queue.SimpleQueue()  # None: a reload without a reply
        self._lock = threading.Lock()
        self._sharers: list[RoutedReload] = []  # requests that the current reload answers
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="reload", daemon=True)
        self._thread.start()

    def request(self, request: RoutedReload | None = None) -> None:
        """Queue a reload. The request, if one is given, gets a reply when the reload has ended."""
        self._waiting.put(request)

    def close(self) -> None:
        """Begin no further reload; requests that wait for one fail."""
        self._is_closed = True
        self.request()

    def give_up(self, patience_s: float) -> None:
        """After `close`: wait at most patience_s for the reload under way, then fail the requests that still wait."""
        self._thread.join(patience_s)
        self._collect_waiting()
        self._answer(_stopping_error())

    def _serve(self) -> None:
        """Reload once for all requests that wait, until `close`. The object's thread runs this."""
        while not self._is_closed:
            self._sharers += filter(None, [self._waiting.get()])
            self._collect_waiting()
            ids = tuple(request.id for _, request in self._sharers)
            self._answer(_stopping_error() if self._is_closed else run_about(ids, self._reload_once))

    def _collect_waiting(self) -> None:
        while not self._waiting.empty():
            self._sharers += filter(None, [self._waiting.get()])

    def _answer(self, result: list[str] | JetselError) -> None:
        """Send the result, what changed or the error, to the requests that share this reload; each gets one reply."""
        with self._lock:
            sharers, self._sharers = self._sharers, []
        for route, request in sharers:
            if isinstance(result, list):
                self._reply(route, Reloaded(PROTOCOL_VERSION, request.id, result))
            else:
                self._reply(route, failure(request.id, result))

    def _reload_once(self) -> list[str] | JetselError:
        """Reload, and report the result to the log and the service manager; return what changed, or the error."""
        began_s = time.monotonic()
        result: list[str] | JetselError
        self._notifier.reloading("reloading")
        log.info("reloading", extra=event("reload-begun"))
        try:
            result = self._reload()
        except JetselError as error:
            result = error
        except Exception:  # a defect in a reload must not leave requests without a reply
            log.exception("a reload failed because of a defect in jetsel", extra=event("reload-failed"))
            result = InternalError("jetsel failed on this reload: its log has the reason")
        took_s = time.monotonic() - began_s
        self._tally.count_reload(took_s, result)
        status = READY
        if isinstance(result, list):
            fields = event("reloaded", changed=result, took_s=took_s)
            log.info("reloaded: %s", ", ".join(result) or "nothing changed", extra=fields)
        else:
            log.error("reload rejected: %s", result, extra=event("reload-refused", code=result.code))
            status += f"; the last reload was rejected: {result}"
        self._notifier.ready(status)  # before the reply, whose reader may ask the service manager
        return result


def _stopping_error() -> ShuttingDownError:
    return ShuttingDownError("the daemon is stopping and does not reload: it reads all files at its next start")
