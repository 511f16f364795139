"""The models that each new engine host must load; limits and pauses after a host has ended."""

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
from jetsel.engines.hosting.process import HostProcess, StopCheck
from jetsel.engines.hosting.running import checked_reply


@dataclass(frozen=True)
class Rules:
    """Intervals and time limits by which the supervisor pings, restarts and loads a host."""

    hello_s: float = 60.0  # limit of a start
    ping_every_s: float = 5.0  # of an idle host
    ping_limit_s: float = 5.0  # after which it counts as hung
    first_pause_s: float = 0.1  # before the second start in window_s; doubled each time
    longest_pause_s: float = 30.0
    same_failure_s: float = 2.0  # after a failed first start, another is not tried for this long
    window_s: float = 300.0  # older ends no longer lengthen the pause
    load_limit_s: float = 240.0  # of one model
    most_strikes: int = 2  # successive deaths of hosts while loading one model, after which it is left out


RULES = Rules()


class HostHistory:
    """How the hosts of one supervisor started and ended, and the pause before the next start.

    restarts: number of starts after an end. last_end: how the last host ended, and when (time.monotonic()); None if
    none has. failure: why the last start failed, and when; None if it succeeded.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._ends_s: deque[float] = deque()  # within the window
        self.pause_s = 0.0
        self.restarts = 0
        self.last_end: tuple[str, float] | None = None
        self.failure: tuple[Exception, float] | None = None

    def add_end(self, how: str, now_s: float) -> None:
        """Note the end of a host, and set the pause: 0 after the first end in window_s, then doubled each time."""
        self.last_end = how, now_s
        self._ends_s.append(now_s)
        while now_s - self._ends_s[0] > self._rules.window_s:
            self._ends_s.popleft()
        earlier, rules = len(self._ends_s) - 1, self._rules
        self.pause_s = min(rules.first_pause_s * 2.0 ** (earlier - 1), rules.longest_pause_s) if earlier else 0.0


log = logging.getLogger("jetsel.engines")


class AnotherHostError(EngineDiedError):
    """The host that a request was meant for has ended. The request was not sent to its successor."""


class Resident(Protocol):
    """A model that the supervisor loads into the host, and again into each restarted one."""

    name: str

    def load_request(self) -> dict[str, Any]:
        """Return the request to load the model (docs/engine-host.md); raises EngineFailedError, EngineDiedError."""

    def on_loaded(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Note that this host has loaded the model. reply: the host's reply to the load."""

    def on_left_out(self, reason: str) -> None:
        """Note that no host will load the model again, and why."""

    def unload(self) -> None:
        """Unload the model from its host."""


Ask = Callable[[HostProcess, str, Mapping[str, Any], float, str, StopCheck], Mapping[str, Any]]
"""Supervisor.ask: host, kind, request, limit in seconds, activity for the log, and StopCheck to the host's reply."""


class Residents:
    """The models that each host must load, and how many hosts died while loading each. Any thread may call."""

    def __init__(self, ask: Ask, stop_reason: StopCheck, rules: Rules) -> None:
        self._ask = ask
        self._stop_reason = stop_reason
        self._rules = rules
        self._lock = threading.Lock()
        self._strikes: dict[Resident, int] = {}  # by model: successive hosts that died while loading it

    def all(self) -> list[Resident]:
        """Return the models that each host must load."""
        with self._lock:
            return list(self._strikes)

    def add(self, resident: Resident) -> None:
        """Load this model into every later host."""
        with self._lock:
            self._strikes[resident] = 0

    def forget(self, resident: Resident) -> None:
        """Do not load this model any more."""
        with self._lock:
            self._strikes.pop(resident, None)

    def load(self, process: HostProcess, resident: Resident) -> None:
        """Load a model into this host; raises EngineFailedError, or EngineDiedError if the host ends."""
        request, activity = resident.load_request(), f"loading {resident.name}"
        reply = self._ask(process, "load", request, self._rules.load_limit_s, activity, self._stop_reason)
        resident.on_loaded(process, checked_reply(resident.name, reply))

    def load_again(self, process: HostProcess, resident: Resident) -> bool:
        """Load a model that an earlier host held; return whether it has become available or was left out.

        It is left out, with the reason, if its load fails or if most_strikes hosts in a row died while loading it.
        """
        with self._lock:
            if resident not in self._strikes:
                return False
        try:
            self.load(process, resident)
            log.warning("model %s is back", resident.name, extra=event("model-back", model=resident.name))
            if not self._set_strikes(resident, 0):  # it was closed during the load
                resident.unload()
            return True
        except EngineFailedError as error:
            reason = str(error)
        except AnotherHostError:
            return False
        except EngineDiedError:
            strikes = self._strikes.get(resident, 0) + 1
            self._set_strikes(resident, strikes)
            if self._stop_reason() is not None or strikes < self._rules.most_strikes:
                return False
            reason = f"{resident.name}: the engine host died {strikes} times while loading it: build it again"
        self.forget(resident)
        resident.on_left_out(reason)
        log.error("model left out: %s", reason, extra=event("model-unavailable", model=resident.name))
        return True

    def _set_strikes(self, resident: Resident, strikes: int) -> bool:
        """Note how many hosts in a row died while loading a model; return whether it must still be loaded."""
        with self._lock:
            is_wanted = resident in self._strikes
            if is_wanted:
                self._strikes[resident] = strikes
            return is_wanted
