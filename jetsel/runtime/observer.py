"""Who is told when a model runs and when a policy thinks: a meter, so that the driver itself has no sensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jetsel.runtime.flight import Flight

Ended = Callable[[], None]
"""Called once, when what began has ended, well or not."""


class Observer(Protocol):
    """Is told on the thread that does the work, just before it begins; what it returns is called just after."""

    def run(self, model: str, flights: Sequence[Flight]) -> Ended:
        """A model is about to run for these flights together, their inputs' preparation included."""

    def choice(self, flight: Flight) -> Ended:
        """The flight's policy is about to think."""


def _nothing() -> None:
    pass


class Nobody:
    """Watches nothing."""

    def run(self, model: str, flights: Sequence[Flight]) -> Ended:
        """Tell nobody."""
        return _nothing

    def choice(self, flight: Flight) -> Ended:
        """Tell nobody."""
        return _nothing
