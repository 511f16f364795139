"""Every check of `jetsel doctor`, in the order in which one thing rests on another. A new one is a line here."""

from __future__ import annotations

from jetsel.cli.doctoring.board import board, memory
from jetsel.cli.doctoring.engines import engines
from jetsel.cli.doctoring.finding import Check
from jetsel.cli.doctoring.folders import folders
from jetsel.cli.doctoring.hosting import interpreters, tensorrt
from jetsel.cli.doctoring.installation import configuration, installation
from jetsel.cli.doctoring.power import power
from jetsel.cli.doctoring.serving import calibrations, daemon, models

CHECKS: tuple[Check, ...] = (
    Check("configuration", configuration),
    Check("installation", installation),
    Check("interpreters of the engine host", interpreters),
    Check("board", board),
    Check("memory", memory),
    Check("power", power),
    Check("TensorRT", tensorrt),
    Check("models", models),
    Check("engines", engines),
    Check("calibrations", calibrations),
    Check("folders", folders),
    Check("daemon", daemon),
)
