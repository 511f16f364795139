"""The one driver that runs every policy."""

from jetsel.runtime.driver import Batch, Driver
from jetsel.runtime.flight import Flight
from jetsel.runtime.lane import Lane
from jetsel.runtime.observer import Ended, Observer

__all__ = ["Batch", "Driver", "Ended", "Flight", "Lane", "Observer"]
