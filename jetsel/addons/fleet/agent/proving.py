"""Runs each model of a new version once, and fits its calibration to this device's times."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jetsel.addons.fleet.agent.installing import CALIBRATION, SHIPPED
from jetsel.artefact import installed
from jetsel.artefact.calibration import ANSWERS
from jetsel.artefact.coding import ARRAYS, MANIFEST, save
from jetsel.base.config import Config
from jetsel.base.errors import RepositoryError
from jetsel.base.process import freeze_and_trim, resident_mb
from jetsel.calibrate.retiming import retime
from jetsel.engines import Backends, warm_up
from jetsel.zoo import Family, scan, verify


def prove(folder: Path, config: Config) -> dict[str, dict[str, float | None]]:
    """Run every model and fit every calibration; return the memory of each model in MB, None if unknown.

    folder: a version, with a folder for each family. Raises RepositoryError, ManifestError or EngineFailedError if a
    model cannot serve, CalibrationError if its calibration cannot be fitted.
    """
    zoo = scan(sorted(path for path in folder.iterdir() if path.is_dir()))
    if zoo.broken:
        raise RepositoryError("; ".join(f"{one.path.name}: {one.reason}" for one in zoo.broken))
    return {name: _prove_family(family, config) for name, family in zoo.families.items()}


def _prove_family(family: Family, config: Config) -> dict[str, float | None]:
    memory_mb = _run_models(family, config)
    folder = family.models[0].directory
    shipped = installed.shipped(folder / SHIPPED)
    if shipped is None:
        return memory_mb
    calibration = shipped.usable_calibration()
    if (folder / SHIPPED / ANSWERS).is_file():
        served = {model.manifest.name: model for model in family.models}
        save(retime(family, served, calibration, folder / SHIPPED, config, lambda *_: None), folder / CALIBRATION)
    elif calibration.identities.keys() <= {model.manifest.name for model in family.models}:
        (folder / CALIBRATION).mkdir(exist_ok=True)
        for name in (MANIFEST, ARRAYS):
            shutil.copyfile(folder / SHIPPED / name, folder / CALIBRATION / name)
    return memory_mb


def _run_models(family: Family, config: Config) -> dict[str, float | None]:
    """Load and run each model; all stay loaded until the end, as in the daemon. Return their memory in MB."""
    settings, backends, engines = config.models, Backends(config.host), []
    memory_mb: dict[str, float | None] = {}
    try:
        for model in family.models:
            name, weights = model.manifest.name, model.weights(len(family.labels.names))
            verify(model)
            backend = settings.backends.get(name, settings.backend)
            backends.get(backend)  # before the measurement, because the runtime's memory belongs to no model
            freeze_and_trim()
            before_mb = resident_mb()
            engines.append(backends.open(backend, weights, concurrency=os.cpu_count() or 1, threads=settings.threads))
            warm_up(engines[-1], weights)
            freeze_and_trim()
            after_mb = resident_mb()
            memory_mb[name] = None  # for models in an engine host
            if backend == "onnxruntime" and before_mb is not None and after_mb is not None:
                memory_mb[name] = round(max(0.0, after_mb - before_mb), 1)
    finally:
        for engine in engines:
            engine.close()
        backends.close()
    return memory_mb
