"""A repository whose family's answers can be worked out by hand, and what devices tell of themselves."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import DaemonUsage, DeviceLimits, FamilyUsage, ModelUsage, Usage, usage_path
from jetsel.artefact.calibration import ANSWERS, MeasuredEnergy
from jetsel.calibrate.record.recording import Recording
from tests.unit.addons.fleet.published import Pair, publish
from tests.unit.daemon.families import CLASSES, calibrate, put_family

SURE, UNSURE = 9.0, 1.0
SAID = {  # of five photographs of classes 0 to 4: the class, and how sure
    "small": ((0, SURE), (1, SURE), (5, UNSURE), (5, UNSURE), (4, SURE)),
    "large": ((0, SURE), (1, SURE), (2, SURE), (5, SURE), (5, SURE)),
}
"""Right are small on 3 of 5, large on 3, and small with large after it, where it is not sure, on 4 of 5."""

COSTS_MS = {"small": 1.0, "large": 10.0}  # so that of both in 3 * 1 + 2 * 11 over 5, which is 5 ms
ENERGIES_MJ = {"small": 2.0, "large": 20.0}  # 10 mJ likewise


def recording() -> Recording:
    logits = np.zeros((2, 5, CLASSES), np.float32)
    for model, said in enumerate(SAID.values()):
        for photograph, (label, sure) in enumerate(said):
            logits[model, photograph, label] = sure
    return Recording(tuple(SAID), logits, np.arange(5), np.zeros((5, 29), np.float32), COSTS_MS)


def repository(url: str, folder: Path, key: Pair) -> Storage:
    """Publish the family `pets`."""
    models = folder / "models"
    models.mkdir()
    put_family(models, "pets", *SAID)
    calibrate(models, "pets", costs_ms=COSTS_MS, energy=MeasuredEnergy(mean_mj=ENERGIES_MJ))
    (models / "calibration" / ANSWERS).write_bytes(recording().condense_answers(dict.fromkeys(SAID, 1.0)))
    storage = Storage(url)
    publishing.init(storage, [key.private])
    publish(storage, models, key)
    return storage


def told(device: str, sequence: int, answers: int = 0, **changes: Any) -> Usage:
    """A line of a device that answered this many requests in its minute, in time, by a daemon that began with it.

    changes: fields of the line or of its daemon.
    """
    models = tuple(
        ModelUsage(name=name, runs=answers, cost_ms=cost, energy_mj=ENERGIES_MJ[name])
        for name, cost in COSTS_MS.items()
    )
    family = FamilyUsage(name="pets", answers=answers, escalated=0, by_model={}, by_policy={}, models=models)
    fields: dict[str, Any] = {
        "device": device,
        "series": "s",
        "sequence": sequence,
        "at_s": 60.0 * sequence,
        "plan": 0,
        "limits": DeviceLimits(storage_mb=100.0),
    } | {name: changes.pop(name) for name in list(changes) if name in Usage.__struct_fields__}
    daemon: dict[str, Any] = {
        "instance": str(sequence),
        "requests": {"ok": answers},
        "families": (family,),
    }
    return Usage(daemon=DaemonUsage(**daemon | changes), **fields)


def upload(storage: Storage, *lines: Usage) -> None:
    """As a device does it."""
    storage.write(usage_path(lines[0]), gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines)))
