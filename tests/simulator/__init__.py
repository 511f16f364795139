"""A simulator of power sensors: a tree of sysfs files, served through FUSE with live power (see README.md)."""

from tests.simulator.mounting import unavailable
from tests.simulator.power import constant, following, function, level, recorded, square
from tests.simulator.rails import FAULTS
from tests.simulator.simulator import Simulator, SimulatorError

__all__ = [
    "FAULTS",
    "Simulator",
    "SimulatorError",
    "constant",
    "following",
    "function",
    "level",
    "recorded",
    "square",
    "unavailable",
]
