"""Record every model of a family on every image, once, in one file that can be resumed, extended and read back."""

from jetsel.calibrate.record.bench import EnergyPlan, RecordOptions
from jetsel.calibrate.record.durations import TimingPlan
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import FoundImages, find
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.recording import Energies, LoadedRecording, Times
from jetsel.calibrate.record.workers import Observer

__all__ = [
    "Energies",
    "EnergyPlan",
    "FoundImages",
    "LoadedRecording",
    "Observer",
    "RecordOptions",
    "Times",
    "TimingPlan",
    "find",
    "load",
    "loaded_models",
    "record",
]
