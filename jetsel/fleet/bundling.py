"""The files of one family: each model's, and those of the calibration in use."""

from __future__ import annotations

import hashlib
from pathlib import Path

from jetsel.base.errors import RepositoryError
from jetsel.fleet.documents import BundledModel
from jetsel.policies import installed
from jetsel.policies.calibration import ANSWERS
from jetsel.policies.coding import ARRAYS, MANIFEST
from jetsel.zoo import Family
from jetsel.zoo.store import verify


def files_of(family: Family, calibrations: Path) -> tuple[dict[str, bytes], tuple[BundledModel, ...]]:
    """Return the content of each file by its path in the folder that a device gets, and the models with their files.

    `scan` reads that folder as this family.
    calibrations: the folder of the owner's; the one that came with the models is taken where none of them is in use.
    Raises ManifestError, CalibrationError or RepositoryError for what a device would refuse.
    """
    found: dict[str, bytes] = {}
    models = []
    for model in family.models:
        theirs = {
            model.manifest_path.name: model.manifest_path.read_bytes(),
            model.manifest.file: verify(model),
            model.manifest.labels: (model.directory / model.manifest.labels).read_bytes(),
            **model.others(),
        }
        models.append(BundledModel(name=model.manifest.name, files=tuple(theirs)))
        for name, content in theirs.items():
            if found.setdefault(name, content) != content:
                raise RepositoryError(
                    f"family {family.name}: two of its folders have a file {name}, and they differ: remove one of the "
                    "models, and add it again under another name"
                )
    shipped = installed.shipped(family.calibration, family.labels.sha256)
    used = installed.current(calibrations, family.name) or shipped
    if used is not None:
        used.usable()
        names = [
            name for name in (MANIFEST, ARRAYS, ANSWERS) if name != ANSWERS or (used.directory / ANSWERS).is_file()
        ]
        found |= {f"calibration/{name}": (used.directory / name).read_bytes() for name in names}
    return found, tuple(models)


def sha256_by_name(files: dict[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each content, in hexadecimal."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
