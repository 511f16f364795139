"""A family that promises two levels: at one every answer is sure enough, at the other none is."""

from pathlib import Path

from jetsel.artefact.promise import MissingPromise, Promise, Promises
from tests.unit.daemon.families import calibrate, put_family

ANSWERED, REFUSED, MISSING = 0.05, 0.02, 0.01
"""Levels: of which every image is answered, none is, and too few images were recorded."""


def family_with_promises(folder: Path, **changes: object) -> str:
    """Write the family `cats` of one model, and return the lines that have it served. changes: of its calibration."""
    put_family(folder, "cats", "cat")
    kept = (Promise(REFUSED, 100.0, (), 0.25, 0.0), Promise(ANSWERED, -100.0, (), 0.875, 0.04))
    promises = Promises(kept, (MissingPromise(MISSING, 1000),), recorded=400)
    single = "single:cat"
    calibrate(folder, "cats", parts={}, default_policy=single, promises={single: promises}, **changes)
    return f'[models]\nstarter = false\npaths = ["{folder}"]\n'
