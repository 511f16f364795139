"""Fit a family's shipped calibration to this machine's latencies: it takes seconds and needs no images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import cv2
import msgspec
import numpy as np

from jetsel import image
from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.condensed import AnsweredModel, read_condensed, read_models
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.calibrating import calibrate
from jetsel.calibrate.fit.assemble import BoundIdentities
from jetsel.calibrate.fit.features import FeatureClock
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record.conditions import NoiseMonitor, gather
from jetsel.calibrate.record.cuts import WHOLE, Shown, show
from jetsel.calibrate.record.durations import noise, run_by_turns
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.calibrate.record.recording import LoadedRecording, Recording, Times
from jetsel.engines import Engine
from jetsel.features import table_hash
from jetsel.policies.registry import kinds_with
from jetsel.site.calibration_in_use import check
from jetsel.zoo import Family, Model

SIZE_PX = (375, 500)  # height and width of the image that models are timed on, typical of ImageNet
_WARM_UPS = 3
LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # a round runs each model once
BUDGET_S = 30.0  # no round starts after this time
_UNKNOWN_ENERGY = "only times were measured again: calibrate on images to measure energies"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Shipped:
    """A calibration that ships with models, and its folder."""

    calibration: Calibration
    folder: Path

    @property
    def can_be_retimed(self) -> bool:
        """Whether the answers that it was fitted on ship with it."""
        return (self.folder / ANSWERS).is_file()


def retime(
    family: Family, served: Mapping[str, Model], shipped: Shipped, config: Config, limits: image.Limits, tell: Progress
) -> Calibration:
    """Return the shipped calibration, fitted again with the latencies of these models on this machine.

    Raises CalibrationError if it is for other models or ships without its answers, EngineFailedError if a model fails.
    """
    if not shipped.can_be_retimed:
        raise CalibrationError(f"the calibration of {family.name} ships without recorded answers: calibrate on images")
    before = shipped.calibration
    answers = read_models(shipped.folder, before)
    models = {name: model for name, model in served.items() if _is_answered(name, model, answers)}
    if not models:
        raise CalibrationError(f"the calibration of {family.name} was made for other models: calibrate on images")
    identities = {name: model.manifest.identity for name, model in models.items()}
    previous = msgspec.structs.replace(
        before,
        identities=identities,
        decode_px=min(before.decode_px, family.decode_px),  # smaller if a fleet's plan omits the largest input
    )
    check(previous, family, identities)
    tell("timing the models", 0, 1)
    shown = _picture(family.decode_px, limits)
    times = _times(replace(family, models=tuple(models.values())), shown, before.features_px, config, limits)
    recording = Recording.of_answers(read_condensed(shipped.folder, times.costs_ms), previous.decode_px)
    loaded = LoadedRecording(recording, times, {}, [], identities, before.features_px, family.name, before.labels_from)
    identity = BoundIdentities(
        family.name, family.labels.sha256, identities, table_hash(), family.decode_px, before.features_px
    )
    clock = FeatureClock([shown], before.features_px, limits, times.features_ms)
    names = tuple(map(str, range(recording.logits.shape[2])))
    order = InstallRequest(names, kinds=kinds_with(before.parts))
    retimed = calibrate(loaded, identity, order, clock, tell).calibration
    return msgspec.structs.replace(
        retimed,
        temperatures={name: answers[name].temperature for name in recording.models},
        wrong_at_most=before.wrong_at_most,
        # Promises that were tested on unknown images cannot be tested again: those images do not ship.
        promises={} if before.unknown_images else retimed.promises,
        because=f"{retimed.because}; based on the times of this machine and the answers that ship with the models",
    )


def _is_answered(name: str, model: Model, answers: Mapping[str, AnsweredModel]) -> bool:
    """Whether the shipped answers are this model's: a model of the same name may be built for another backend."""
    return name in answers and answers[name].identity == model.manifest.identity


def _picture(decode_px: int, limits: image.Limits) -> Shown:
    """Return a synthetic image, decoded from JPEG: latencies depend on its size, hardly on its content."""
    y, x = np.mgrid[: SIZE_PX[0], : SIZE_PX[1]]
    bgr = np.stack([x // 2 % 256, y // 2 % 256, (x // 32 + y // 32) % 2 * 255], axis=2).astype(np.uint8)
    data = cv2.imencode(".jpg", bgr)[1].tobytes()
    return show(data, WHOLE, limits, decode_px)


def _times(family: Family, shown: Shown, features_px: int, config: Config, limits: image.Limits) -> Times:
    """Time each model, its preprocessing included, and the extraction of all features, in turns."""
    specs = {model.manifest.name: model.manifest.input for model in family.models}

    def run(name: str, engine: Engine) -> object:
        return engine.infer(image.model_input(shown.photograph, specs[name]))

    conditions, watch = gather(config.power.sysfs), NoiseMonitor(config.power.sysfs)
    with loaded_models(family, config) as engines:
        runs: dict[str, Callable[[], object]] = {name: partial(run, name, engine) for name, engine in engines.items()}
        for work in runs.values():
            for _ in range(_WARM_UPS):
                work()
        runs[""] = partial(shown.extract, limits, features_px)
        durations_ms = run_by_turns(runs, MOST_ROUNDS, BUDGET_S, LEAST_ROUNDS)
        watch.look()
    taken = {name: median(values) for name, values in durations_ms.items()}
    features_ms = taken.pop("")
    noisy = "; ".join(reason for reason in (watch.reason(), noise(durations_ms)) if reason)
    return Times(taken, features_ms, conditions.described(), noisy or None, energy_reason=_UNKNOWN_ENERGY)
