"""Record: every model on every photograph into one file, once; what was interrupted goes on where it was."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import cv2

from jetsel import image
from jetsel.calibrate.record.bounded import in_order
from jetsel.calibrate.record.conditions import gather
from jetsel.calibrate.record.contents import Task, claim
from jetsel.calibrate.record.examine import Examiner, write
from jetsel.calibrate.record.metering import EnergyPlan, meter_models
from jetsel.calibrate.record.noise import Watch
from jetsel.calibrate.record.photographs import Found, count_reasons
from jetsel.calibrate.record.progress import Reporter, Stop, Tell
from jetsel.calibrate.record.repeats import Plan
from jetsel.calibrate.record.schema import faults
from jetsel.calibrate.record.store import Store
from jetsel.calibrate.record.timing import Bench, time_models
from jetsel.config import Config, host_settings
from jetsel.engines import Backends, Engine, warm_up
from jetsel.errors import CalibrationError
from jetsel.power.integration import NO_METER
from jetsel.power.meter import Meter
from jetsel.zoo import Family, verify

DEFAULTS = Config()


@dataclass(frozen=True)
class Options:
    """How to record. workers: threads that decode and infer.

    meter: None where energy is not measured, and unmetered says why. doubt: why what is measured may not be right.
    idle_half_w: half of the 95 % interval of the idle power that the meter deducts. sysfs: as [power] has it.
    """

    limits: image.Limits = field(default_factory=lambda: image.Limits(max_bytes=64_000_000, max_pixels=50_000_000))
    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    plan: Plan = field(default_factory=Plan)
    meter: Meter | None = None
    unmetered: str | None = NO_METER
    doubt: str | None = None
    idle_half_w: float = 0.0
    energy: EnergyPlan = field(default_factory=EnergyPlan)
    sysfs: str = "/sys"


@dataclass(frozen=True)
class Recorded:
    """What a run did. photographs: how many the recording has in all; recorded: how many were new or had new models.

    skipped: kind of reason -> files; noisy: why its times cannot be trusted, None where nothing speaks against them;
    unmetered: why no energy was measured, None where it was. finished: False where stopped.
    """

    photographs: int
    recorded: int
    skipped: Mapping[str, int]
    noisy: str | None
    unmetered: str | None
    finished: bool


@contextmanager
def loaded_models(family: Family, config: Config = DEFAULTS) -> Iterator[dict[str, Engine]]:
    """Check, load and warm up every model of the family: name -> engine; closed at the end.

    Engines serve as many callers as there are cores.
    Raises ManifestError, ConfigError or EngineFailedError.
    """
    engines: dict[str, Engine] = {}
    settings = config.models
    backends = Backends(host_settings(config.host))
    cores = len(os.sched_getaffinity(0))
    try:
        for model in family.models:
            manifest = model.manifest
            verify(model)
            weights = model.weights(len(family.labels.wnids))
            chosen = settings.backends.get(manifest.name, settings.backend)
            engine = backends.open(chosen, weights, concurrency=cores, threads=settings.threads)
            engines[manifest.name] = engine
            warm_up(engine, weights, (1,))
        yield engines
    finally:
        for engine in engines.values():
            engine.close()
        backends.close()


def record(
    path: Path,
    family: Family,
    engines: Mapping[str, Engine],
    found: Found,
    options: Options = Options(),
    tell: Tell | None = None,
    stop: Stop | None = None,
) -> Recorded:
    """Record the photographs under the family's models that `engines` holds, then time and meter the models.

    Whatever the file at `path` has is not done again; a kill at any moment loses at most a second's work. What cannot
    be read is listed and stops nothing. Memory holds a few photographs at a time, and of each file its path.
    Raises CalibrationError where the file is refused or no photograph can be used, EngineFailedError where a model
    fails; what was done until then stays.
    """
    halt = stop or threading.Event()
    models = [model for model in family.models if model.manifest.name in engines]
    conditions = gather(options.sysfs)
    bench = Bench(family, engines, options.plan, options.limits, options.doubt, options.idle_half_w)
    with faults(path), Store(path, family) as store, _one_opencv_thread():
        store.adopt(models, family.models[0])
        number = store.begin(conditions)
        tasks = claim(store, found, options.workers, tell, halt)
        recorded, finished = 0, False
        if tasks is not None:
            examiner = Examiner(family, engines, options.limits)
            recorded, finished = _examine_all(store, tasks, examiner, options.workers, tell, halt)
        if finished:
            _refuse_none(store, found)
            watch = Watch(options.sysfs)
            finished = time_models(store, bench, number, watch, tell, halt)
            if options.meter is None:
                store.connection.execute(
                    "UPDATE conditions SET unmetered = ? WHERE id = ?", (options.unmetered, number)
                )
            elif finished:
                finished = meter_models(store, bench, options.meter, options.energy, number, watch, tell, halt)
        return _summary(store, recorded, finished, number)


def _examine_all(
    store: Store, tasks: list[Task], examiner: Examiner, workers: int, tell: Tell | None, stop: Stop
) -> tuple[int, bool]:
    """Examine what lacks predictions; return how many were, and False where stopped."""
    reporter = Reporter("recording", len(tasks), tell)
    recorded = 0
    with closing(in_order(examiner, tasks, workers)) as outcomes:
        for done, (task, seen) in enumerate(outcomes, 1):
            if isinstance(seen, str):
                store.skip([(task.photograph.path, seen)])
            else:
                write(store, task, seen)
                recorded += 1
            store.tick()
            reporter.reach(done)
            if stop.is_set():
                return recorded, False
    return recorded, True


def _refuse_none(store: Store, found: Found) -> None:
    """Raise where not one of the photographs that were found is recorded."""
    execute = store.connection.execute
    if execute("SELECT 1 FROM chosen JOIN photographs USING (sha256) LIMIT 1").fetchone() is None:
        tried = {str(photograph.path) for photograph in found.photographs}
        listed = execute("SELECT path, reason FROM skipped ORDER BY path").fetchall()
        path, reason = next((path, reason) for path, reason in listed if path in tried)
        raise CalibrationError(
            f"{found.source}: none of {len(found.photographs)} photographs can be used, the first: {path}: {reason}; "
            "name a folder with whole JPEG, PNG, WebP or BMP files"
        )


def _summary(store: Store, recorded: int, finished: bool, number: int) -> Recorded:
    execute = store.connection.execute
    (photographs,) = execute("SELECT COUNT(*) FROM photographs").fetchone()
    reasons = [reason for (reason,) in execute("SELECT reason FROM skipped")]
    noisy = execute("SELECT DISTINCT noisy FROM conditions WHERE id IN (SELECT conditions FROM timings) AND noisy > ''")
    unmetered = execute(
        "SELECT reason FROM energies WHERE mean_mj IS NULL UNION ALL SELECT unmetered FROM conditions WHERE id = ?",
        (number,),
    ).fetchone()
    noise = "; ".join(reason for (reason,) in noisy) or None
    return Recorded(photographs, recorded, count_reasons(reasons), noise, unmetered[0], finished)


@contextmanager
def _one_opencv_thread() -> Iterator[None]:
    """Photographs are worked on beside each other, as in the daemon: none shall take every core."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)
