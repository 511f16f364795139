"""The one driver that runs every policy."""

from jetsel.runtime.driver import Batch, Driver
from jetsel.runtime.flight import Flight
from jetsel.runtime.lane import Lane

__all__ = ["Batch", "Driver", "Flight", "Lane"]
