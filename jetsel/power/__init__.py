"""What answers cost in energy: the board's sensors, a sampler process, integration over windows, and shares of it."""

from jetsel.power.reading import NO_METER, Reading

__all__ = ["NO_METER", "Reading"]
