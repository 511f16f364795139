"""The models that are to be loaded in every engine host that starts, and what their loading has cost hosts so far."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol

from jetsel.engines.hosting.process import HostProcess


class Resident(Protocol):
    """A model that is to be loaded in every host that starts."""

    name: str

    def request(self) -> Mapping[str, Any]:
        """What `load` is asked with."""

    def moved_in(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Take note that this host has loaded it."""

    def move_out(self) -> None:
        """Have the host unload it."""

    def refused(self, reason: str) -> None:
        """Take note that it is not loaded any more, for good."""


class Residents:
    """The models, in the order in which they came. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[Resident] = []
        self._strikes: dict[int, int] = {}

    def add(self, resident: Resident) -> None:
        """Have every later host load it."""
        with self._lock:
            self._known.append(resident)

    def forget(self, resident: Resident) -> None:
        """Have it loaded no more."""
        with self._lock:
            self._known = [known for known in self._known if known is not resident]
            self._strikes.pop(id(resident), None)

    def forget_all(self) -> list[Resident]:
        """Have none loaded any more, and return those that were."""
        with self._lock:
            gone, self._known = self._known, []
            self._strikes.clear()
            return gone

    def all(self) -> list[Resident]:
        """Return those there are now."""
        with self._lock:
            return list(self._known)

    def names(self) -> list[str]:
        """Return how those there are now are called."""
        return [resident.name for resident in self.all()]

    def holds(self, resident: Resident) -> bool:
        """Whether it is still to be loaded."""
        return any(known is resident for known in self.all())

    def strike(self, resident: Resident) -> int:
        """Count that a host died of loading it; return how many have in a row."""
        with self._lock:
            self._strikes[id(resident)] = self._strikes.get(id(resident), 0) + 1
            return self._strikes[id(resident)]

    def loaded(self, resident: Resident) -> None:
        """Take note that a host has loaded it: what came before does not count any more."""
        with self._lock:
            self._strikes.pop(id(resident), None)
