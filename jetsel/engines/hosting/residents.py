"""What the supervisor asks of a model that is to be loaded in every engine host that starts."""

from __future__ import annotations

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
