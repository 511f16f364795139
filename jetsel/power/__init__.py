"""What an answer cost: energy in millijoules, or None and the reason."""

from jetsel.power.meter import Meter
from jetsel.power.reading import NO_METER, Reading

__all__ = ["NO_METER", "Meter", "Reading"]
