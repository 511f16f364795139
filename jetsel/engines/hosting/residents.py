"""What each new engine host is to hold: how a model is loaded, and after how many deaths, with what pauses."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from jetsel.base.errors import EngineDiedError
from jetsel.base.events import event
from jetsel.engines.base import EngineFailedError
from jetsel.engines.hosting.process import HostProcess, Stopped
from jetsel.engines.hosting.running import good


@dataclass(frozen=True)
class Rules:
    """When a host is asked whether it lives, and how often it is started again."""

    hello_s: float = 60.0
    ping_every_s: float = 5.0  # of an idle host
    ping_limit_s: float = 5.0
    first_pause_s: float = 0.1  # before the second start within the window; it doubles with every further one
    longest_pause_s: float = 30.0
    same_failure_s: float = 2.0  # that a failed first start is not tried again: the next model asks at once
    window_s: float = 300.0
    load_limit_s: float = 240.0
    most_strikes: int = 2  # deaths while loading one model: it is left out from then on


RULES = Rules()


class Deaths:
    """The ends of hosts within the window. Times are seconds on the monotonic clock."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._times_s: deque[float] = deque()
        self.pause_s = 0.0  # before the next start

    def count(self, now_s: float) -> None:
        """Count one more: no pause follows the first, then one that is twice as long each time."""
        self._times_s.append(now_s)
        while now_s - self._times_s[0] > self._rules.window_s:
            self._times_s.popleft()
        earlier, rules = len(self._times_s) - 1, self._rules
        self.pause_s = min(rules.first_pause_s * 2.0 ** (earlier - 1), rules.longest_pause_s) if earlier else 0.0


log = logging.getLogger("jetsel.engines")


class AnotherHostError(EngineDiedError):
    """The host that was meant is gone: nothing was asked of the one that has followed it."""


class Resident(Protocol):
    """A model that each host is to hold."""

    name: str

    def request(self) -> dict[str, Any]:
        """Return what asks a host to load it."""

    def loaded(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Learn that this host holds it."""

    def refused(self, reason: str) -> None:
        """Learn that no host will hold it."""

    def unload(self) -> None:
        """Leave the host that holds it."""


Ask = Callable[[HostProcess, str, Mapping[str, Any], float, str, Stopped], Mapping[str, Any]]
"""As Supervisor.ask."""


class Residents:
    """Any thread may call. stopped: why no model is to be loaded any more, None while some may be."""

    def __init__(self, ask: Ask, stopped: Stopped, rules: Rules) -> None:
        self._ask = ask
        self._stopped = stopped
        self._rules = rules
        self._lock = threading.Lock()
        self._strikes: dict[Resident, int] = {}  # of each model: hosts in a row that died while they loaded it

    def all(self) -> list[Resident]:
        """Return every model that is to be held."""
        with self._lock:
            return list(self._strikes)

    def add(self, resident: Resident) -> None:
        """Have every later host load this model."""
        with self._lock:
            self._strikes[resident] = 0

    def forget(self, resident: Resident) -> None:
        """Load this model no more."""
        with self._lock:
            self._strikes.pop(resident, None)

    def load(self, process: HostProcess, resident: Resident) -> None:
        """Load a model into this host; raises EngineFailedError, EngineDiedError."""
        request, what = resident.request(), f"loading {resident.name}"
        reply = self._ask(process, "load", request, self._rules.load_limit_s, what, self._stopped)
        resident.loaded(process, good(resident.name, reply))

    def load_again(self, process: HostProcess, resident: Resident) -> bool:
        """Load a model that an earlier host held; one that cannot be loaded any more is left out with its reason.

        Return whether its state changed.
        """
        with self._lock:
            if resident not in self._strikes:
                return False
        try:
            self.load(process, resident)
            log.warning("model %s is back", resident.name, extra=event("model-back", model=resident.name))
            if not self._count(resident, 0):  # closed meanwhile, when it was nowhere
                resident.unload()
            return True
        except EngineFailedError as error:
            reason = str(error)
        except AnotherHostError:
            return False
        except EngineDiedError:
            strikes = self._strikes.get(resident, 0) + 1
            self._count(resident, strikes)
            if self._stopped() is not None or strikes < self._rules.most_strikes:
                return False
            reason = f"{resident.name}: the engine host died {strikes} times while loading it: build it again"
        self.forget(resident)
        resident.refused(reason)
        log.error("model left out: %s", reason, extra=event("model-unavailable", model=resident.name))
        return True

    def _count(self, resident: Resident, strikes: int) -> bool:
        """Note how many hosts died of loading it; return whether it is still to be loaded."""
        with self._lock:
            is_wanted = resident in self._strikes
            if is_wanted:
                self._strikes[resident] = strikes
            return is_wanted
