"""The models that are to be loaded in every engine host that starts, and how many hosts died of loading each."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol

from jetsel.engines.hosting.process import HostProcess


class Resident(Protocol):
    """A model that is to be loaded in every host that starts."""

    name: str

    def request(self) -> Mapping[str, Any]:
        """Return what `load` is asked with."""

    def loaded(self, process: HostProcess, reply: Mapping[str, Any]) -> None:
        """Take note that this host has loaded it."""

    def unload(self) -> None:
        """Have the host unload it."""

    def refused(self, reason: str) -> None:
        """Take note that it is not loaded any more, for good."""


class Residents:
    """The models, in the order in which they came. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strikes: dict[Resident, int] = {}

    def add(self, resident: Resident) -> None:
        """Have every later host load it."""
        with self._lock:
            self._strikes[resident] = 0

    def forget(self, *residents: Resident) -> None:
        """Have these loaded no more."""
        with self._lock:
            for resident in residents:
                self._strikes.pop(resident, None)

    def all(self) -> list[Resident]:
        """Return those there are now."""
        with self._lock:
            return list(self._strikes)

    def strike(self, resident: Resident, died: bool) -> int:
        """Take note whether a host died of loading it; return how many have in a row."""
        with self._lock:
            strikes = self._strikes.get(resident, 0) + 1 if died else 0
            if resident in self._strikes:
                self._strikes[resident] = strikes
            return strikes
