"""Folders of families whose models really run: each is one matrix, and its multiply-accumulates order it."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import Calibration, CalibrationImages, CascadeFacts, ChainFacts, PolicyPart, Rung
from jetsel.artefact.coding import save
from jetsel.base.config import Config, Models
from jetsel.daemon.family import ServedFamily, serve_family
from jetsel.daemon.snapshot import Snapshot, load_snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.features import table_hash
from jetsel.runtime import Timers
from jetsel.site.configured import configure_family
from jetsel.zoo import Family, scan
from tests.contract.tiny import matrix_model
from tests.unit.zoo.making import put_model

SIDE_PX = 4
CLASSES = 6
INPUT = {
    "resize": "stretch",
    "interpolation": "area",
    "crop": "none",
    "channels": "rgb",
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}

NEIGHBOURS = {
    "minimum": np.zeros(2, np.float32),
    "maximum": np.ones(2, np.float32),
    "points": np.linspace(0, 1, 12, dtype=np.float32).reshape(6, 2),
    "right": np.arange(12).reshape(6, 2) % 2 == 0,
    "goes_on": np.zeros((6, 2), bool),
}


def labels(family: str, classes: int = CLASSES) -> str:
    return "".join(f"n{number:08d}\t{family} {number}\n" for number in range(classes))


def put_family(
    folder: Path,
    family: str,
    *models: str,
    classes: int = CLASSES,
    sides_px: Sequence[int] | None = None,
    matrices: Sequence[NDArray[np.float64]] = (),
) -> Path:
    """Write these models, cheapest first; `classes` is what they answer, whatever the labels say. Return the folder.

    matrices: of each model, (3 * side * side, classes); left out: drawn, so that no class is certain.
    """
    for place, (name, side_px) in enumerate(zip(models, sides_px or [SIDE_PX] * len(models), strict=True)):
        draw = np.random.default_rng([place, len(family)])
        matrix = matrices[place] if matrices else draw.normal(size=(3 * side_px**2, classes)) / side_px
        weights = matrix_model(matrix.astype(np.float32), side_px=side_px)
        put_model(
            folder,
            labels=labels(family),
            weights=weights,
            name=name,
            family=family,
            file=f"{name}.onnx",
            sha256=hashlib.sha256(weights).hexdigest(),
            input={**INPUT, "width_px": side_px, "height_px": side_px},
            embedding_width=3 * side_px**2,
            multiply_accumulates=1000 * (place + 1),
        )
    return folder


def config_of(*folders: Path, models: Mapping[str, object] = MappingProxyType({}), **sections: object) -> Config:
    """Return a configuration that serves the families in these folders, and no other. models: further settings."""
    chosen = Models(starter=False, paths=[str(folder) for folder in folders], **models)  # type: ignore[arg-type]
    return Config(models=chosen, **sections)  # type: ignore[arg-type]


def loaded(config: Config, before: Snapshot | None = None, backends: Backends | None = None) -> Snapshot:
    """Return the snapshot of a configuration, with its engines."""
    snapshot = read_snapshot(config, before)
    load_snapshot(snapshot, backends or Backends(), lambda *_: None, threading.Event(), before)
    return snapshot


def served_cats(folder: Path, config: Config | None = None) -> ServedFamily:
    """Return the family cats of this folder as a daemon of this configuration serves it, without its engines."""
    config = config or Config()
    return serve_family(configure_family(scan([folder]).families["cats"], config, is_default=True), config, Timers())


def calibrate(folder: Path, family: str, **changes: object) -> Calibration:
    """Save such a calibration beside the models, as one that is shipped with them; return it."""
    calibration = calibration_of(folder, family, **changes)
    save(calibration, folder / "calibration")
    return calibration


def calibration_of(folder: Path, family: str, **changes: object) -> Calibration:
    """Return a calibration that belongs to the family in this folder, but for the changes."""
    found: Family = scan([folder]).families[family]
    names = [model.manifest.name for model in found.models]
    ends = names[0], names[-1]
    fields: dict[str, object] = {
        "family": family,
        "labels_sha256": found.labels.sha256,
        "identities": {model.manifest.name: model.manifest.identity for model in found.models},
        "feature_table": table_hash(),
        "decode_px": found.decode_px,
        "features_px": 4096,
        "images": CalibrationImages(count=6),
        "temperatures": {name: 1.5 + place for place, name in enumerate(names)},
        "costs_ms": {name: 1.0 + place for place, name in enumerate(names)},
        "parts": {
            "chain": PolicyPart(
                ChainFacts(tuple((Rung(name, 0.0),) for name in ends), ("contrast", "hue1"), 3, 0.1), NEIGHBOURS
            ),
            "cascade": PolicyPart(CascadeFacts((Rung(names[0], 0.75), Rung(names[-1], 0.0)), ())),
        },
        "default_policy": "cascade",
        "because": "the cascade did best",
        "figures": {},
        "created": "2026-11-20",
    }
    return Calibration(**{**fields, **changes})  # type: ignore[arg-type]
