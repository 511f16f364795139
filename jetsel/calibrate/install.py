"""Turn images into an installed calibration: `jetsel calibrate` calls `record`, `fit` and `install` in this order.

docs/architecture.md lists the files that take part, and the value that each one passes on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jetsel.artefact import installed
from jetsel.artefact.calibration import Calibration
from jetsel.artefact.installed import Installed
from jetsel.base.config import Config, Power, power_folder
from jetsel.base.errors import CalibrationError, did_you_mean
from jetsel.calibrate.calibrating import FOLDS, Calibrated, calibrate
from jetsel.calibrate.fit.features import FeatureClock, decode_sample
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record import photographs, recorder
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.classes import check_family
from jetsel.calibrate.record.conditions import gather
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import UNKNOWN, FoundImages
from jetsel.calibrate.record.recording import LoadedRecording
from jetsel.calibrate.record.workers import Observer, Reporter
from jetsel.image import Limits
from jetsel.policies.registry import no_such
from jetsel.power.machine import comparable_facts, read_facts
from jetsel.power.meter import OpenedMeter, open_meter
from jetsel.site.configured import limits_of
from jetsel.site.site import FamilyCalibrations
from jetsel.zoo import Family, Model


@dataclass(frozen=True, eq=False)
class RecordingJob:
    """Which models run on which images, and the recording that stores the results."""

    family: Family
    served: Mapping[str, Model]  # the models to record, by name, cheapest first
    config: Config
    limits: Limits
    path: Path  # of the recording
    photos: Path  # a folder or CSV of images
    label_map: Path | None = None  # CSV that maps folder names to labels
    labels_from: str | None = None  # model whose answers replace labels, None for the owner's labels
    always_recorded: frozenset[str] = frozenset()  # models that are kept even if a cheaper one dominates them
    sizes: tuple[int, ...] = ()  # shorter sides in pixels of reduced copies to record too


def recording_job(
    calibrations: FamilyCalibrations,
    path: Path,
    photos: Path,
    label_map: Path | None = None,
    labels_from: str | None = None,
    *,
    all_models: bool = False,
    sizes: tuple[int, ...] = (),
) -> RecordingJob:
    """Return the job that records the images in `photos` by the family's models. Its parameters are RecordingJob's.

    Raises CalibrationError if the family has no models, or if another family has more of the images' classes.
    """
    family, served = calibrations.served()
    if labels_from is None:
        check_family(photos, family, calibrations.others, label_map)
    config = calibrations.config
    # Models in use are needed for the comparison; without labels it is unknown which models are dominated.
    always_recorded = frozenset(served) if all_models or labels_from is not None else calibrations.incumbent().models
    return RecordingJob(
        family, served, config, limits_of(config), path, photos, label_map, labels_from, always_recorded, sizes
    )


def check_requested_policy(job: RecordingJob, request: InstallRequest) -> None:
    """Raise CalibrationError if the family cannot have the requested policy; called before recording starts."""
    policies = [*(f"single:{model}" for model in job.served), *(kind.name for kind in request.kinds)]
    if request.policy is not None and request.policy not in policies:
        raise CalibrationError(f"--policy: the family has {no_such(request.policy, policies)}")


def unknown_images_job(
    calibrations: FamilyCalibrations, job: RecordingJob, recorded: Sequence[str], folder: Path
) -> RecordingJob:
    """Return the job for a folder of images of no class of the family. recorded: the models that `job` recorded."""
    path = recording_path(calibrations, folder, job.sizes)
    served = {name: model for name, model in job.served.items() if name in recorded}
    return replace(job, served=served, path=path, photos=folder, label_map=None, labels_from=list(served)[-1])


def recording_path(calibrations: FamilyCalibrations, photos: Path, sizes: tuple[int, ...] = ()) -> Path:
    """Return the path of a recording of `photos`; the same family, images and sizes give the same path.

    So a repeated command resumes its file. The decoded size is part of the name, as a model with a larger input needs a
    new file. Raises CalibrationError if the family has no models.
    """
    family, _ = calibrations.served()
    source_hash = hashlib.sha256(os.fsencode(photos.resolve())).hexdigest()[:8]
    name = "-".join((family.name, photos.resolve().name, *map(str, sizes), f"{family.decode_px}px", source_hash))
    return calibrations.folder / "recordings" / f"{name}.sqlite"


def record(job: RecordingJob, observer: Observer, goal: Goal | None = None) -> LoadedRecording:
    """Record what the recording lacks, and return the whole recording. Raises KeyboardInterrupt if it was stopped.

    goal: for a calibration; None if the recording serves only to evaluate. Raises CalibrationError before recording
    starts if there are too few images for the goal, or if it needs energy and no meter works.
    """
    served = tuple(job.served)
    if job.labels_from is not None and job.labels_from not in served:
        suggestion = did_you_mean(job.labels_from, served)
        raise CalibrationError(
            f"--labels-from: family {job.family.name} has no model {job.labels_from}{suggestion}: {', '.join(served)}"
        )
    images = photographs.find_images(job.photos, job.family.labels, job.label_map, job.labels_from is None, job.sizes)
    if goal is not None and len(images.photographs) < FOLDS:
        count = f"{len(images.photographs)} images with a label that the family knows"
        shown = [skipped for skipped in images.skipped if skipped.reason.startswith(UNKNOWN)] or images.skipped
        note = (
            f"; {len(images.skipped)} files are left out, for example {shown[0].path}: {shown[0].reason}"
            if shown
            else ""
        )
        raise CalibrationError(f"{job.photos}: {count} are too few, the minimum is {FOLDS}: add images{note}")
    with open_meter(job.config.power, power_folder(job.config.power)) as opened:
        if goal is not None and goal.needs_energy and opened.reason is not None:
            raise CalibrationError(f"the goal needs energy, but energy is unknown: {opened.reason}")
        _record_into(job, images, opened, observer)
    return load(job.path, job.family, served, job.labels_from)


def fit(
    job: RecordingJob,
    loaded: LoadedRecording,
    request: InstallRequest,
    report: Reporter,
    unknown: LoadedRecording | None = None,
) -> Calibrated:
    """Compare every policy on held-out images, and fit the calibration; the second step of `jetsel calibrate`.

    request: its `machine` is filled in here. unknown: the recording of images that belong to no class of the family.
    Raises CalibrationError if the goal or the required error rate cannot be met, see `calibrate`.
    """
    request = replace(request, machine=machine_facts(job.config.power, loaded.times.conditions))
    unknown_recording = None if unknown is None else unknown.recording
    return calibrate(loaded, request, feature_clock(job, loaded), report, unknown_recording)


def install(
    calibrations: FamilyCalibrations, loaded: LoadedRecording, calibration: Calibration, page: str | None
) -> Installed:
    """Install a calibration with its report and its answers, from which another machine can retime it.

    Raises CalibrationError and changes nothing if it cannot be installed.
    """
    answers = loaded.recording.condense_answers(calibration.temperatures)
    return installed.install(calibration, calibrations.folder, calibrations.family, page, answers)


def feature_clock(job: RecordingJob, loaded: LoadedRecording) -> FeatureClock:
    """Return a clock that estimates, on some of the recorded images, how long features take."""
    shown = decode_sample(loaded.recording.paths, job.family.decode_px, job.limits)
    return FeatureClock(shown, loaded.identity.features_px, job.limits, loaded.times.features_ms)


def machine_facts(power: Power, conditions: Mapping[str, str]) -> dict[str, Any]:
    """Return facts of this machine to store in the calibration; empty if the recording was made under other conditions.

    conditions: of the recording, by name in words: board, power mode and clocks must be the same now.
    """
    now = gather(power.sysfs).described()
    if any(conditions.get(condition) != now[condition] for condition in ("board", "power mode", "CPU clock")):
        return {}
    return comparable_facts(read_facts(power))


def _record_into(job: RecordingJob, images: FoundImages, opened: OpenedMeter, observer: Observer) -> None:
    """Load the models and add missing results to the recording; raises KeyboardInterrupt if it was stopped."""
    try:
        job.path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise CalibrationError(f"{job.path.parent}: {fault.strerror}: choose a file with --recording FILE") from fault
    # Engines are for served models alone. `record` needs the whole family, whose largest input decides how it decodes.
    family = replace(job.family, models=tuple(job.served.values()))
    with recorder.loaded_models(family, job.config) as engines:
        compares = observer.announce is not None and job.labels_from is None  # only if the time can be announced
        options = RecordOptions(
            limits=job.limits,
            opened=opened,
            sysfs=job.config.power.sysfs,
            always_recorded=job.always_recorded,
            unproven=frozenset(name for name, model in job.served.items() if compares and model.manifest.is_unproven),
        )
        finished = recorder.record(job.path, job.family, engines, images, options, observer)
    if not finished:
        raise KeyboardInterrupt
