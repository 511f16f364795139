"""Record once: every model of a family on every photograph, into one file that is resumed, added to and read back."""

from jetsel.calibrate.record.bench import EnergyPlan, Options, Plan
from jetsel.calibrate.record.load import Energies, Loaded, Times, load
from jetsel.calibrate.record.photographs import Found, count_reasons, find
from jetsel.calibrate.record.recorder import Recorded, loaded_models, record

__all__ = [
    "Energies",
    "EnergyPlan",
    "Found",
    "Loaded",
    "Options",
    "Plan",
    "Recorded",
    "Times",
    "count_reasons",
    "find",
    "load",
    "loaded_models",
    "record",
]
