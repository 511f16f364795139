"""The files of one family: each model's, its multiplexer's, and those of the calibration in use."""

from __future__ import annotations

import hashlib
from pathlib import Path

from jetsel.errors import RepositoryError
from jetsel.policies import installed
from jetsel.policies.coding import ARRAYS, MANIFEST
from jetsel.zoo import Family
from jetsel.zoo.store import verify


def files_of(family: Family, calibrations: Path) -> dict[str, bytes]:
    """Return the content of each file by its path in the folder that a device gets, which `scan` reads as this family.

    calibrations: the folder of the owner's; the one that came with the models is taken where none of them is in use.
    Raises ManifestError, CalibrationError or RepositoryError for what a device would refuse.
    """
    found: dict[str, bytes] = {}
    for model in family.networks:
        theirs = {
            model.manifest_path.name: model.manifest_path.read_bytes(),
            model.manifest.file: verify(model),
            model.manifest.labels: (model.directory / model.manifest.labels).read_bytes(),
            **model.others(),
        }
        for name, content in theirs.items():
            if found.setdefault(name, content) != content:
                raise RepositoryError(
                    f"family {family.name}: two of its folders have a file {name}, and they differ: remove one of the "
                    "models, and add it again under another name"
                )
    used = installed.current(calibrations, family.name) or installed.shipped(family.calibration)
    if used is not None:
        used.usable()
        found |= {f"calibration/{name}": (used.directory / name).read_bytes() for name in (MANIFEST, ARRAYS)}
    return found


def sha256_by_name(files: dict[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each content, in hexadecimal."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
