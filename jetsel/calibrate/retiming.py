"""Fit a family's shipped calibration to this machine's latencies, without images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import cv2
import msgspec
import numpy as np

from jetsel import image
from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.condensed import read_condensed, read_models
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.calibrating import calibrate
from jetsel.calibrate.fit.features import FeatureClock
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record.conditions import NoiseMonitor, describe_noise, gather, run_by_turns
from jetsel.calibrate.record.cuts import WHOLE, CutImage, decode_cut
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.calibrate.record.recording import LoadedRecording, Recording, Times
from jetsel.calibrate.record.workers import Reporter
from jetsel.engines import Engine
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.chain import ChainKind
from jetsel.policies.registry import kinds_with
from jetsel.site.calibration_in_use import check_fits
from jetsel.site.configured import limits_of
from jetsel.zoo import Family, Model

SIZE_PX = (375, 500)  # height and width of the image that models are timed on, typical of ImageNet
_WARM_UPS = 3
LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # a round runs each model once
BUDGET_S = 30.0  # no round starts after this time
_UNKNOWN_ENERGY = "only times were measured again: calibrate on images to measure energies"


def retime(
    family: Family, served: Mapping[str, Model], shipped: Calibration, folder: Path, config: Config, report: Reporter
) -> Calibration:
    """Return a shipped calibration, fitted again with the latencies of the served models on this machine.

    shipped: the calibration in `folder`. It is fitted to the answers that were recorded with it.
    Raises CalibrationError if it is for other models or has no recorded answers, EngineFailedError if a model fails.
    """
    if not (folder / ANSWERS).is_file():
        raise CalibrationError(f"the calibration of {family.name} ships without recorded answers: calibrate on images")
    answers = read_models(folder, shipped)
    # A model of the same name may be built for another backend: its answers are others.
    recorded_identities = {name: model_answers.identity for name, model_answers in answers.items()}
    models = {name: model for name, model in served.items() if recorded_identities.get(name) == model.manifest.identity}
    if not models:
        raise CalibrationError(f"the calibration of {family.name} was made for other models: calibrate on images")
    identities = {name: model.manifest.identity for name, model in models.items()}
    previous = msgspec.structs.replace(
        shipped,
        family=family.name,
        identities=identities,
        decode_px=min(shipped.decode_px, family.decode_px),  # smaller if a fleet's plan omits the largest input
    )
    check_fits(previous, family, identities)
    report("timing the models", 0, 1)
    limits = limits_of(config)
    test_image = _synthetic_image(family.decode_px, limits)
    costs_ms, times = _measure_times(
        replace(family, models=tuple(models.values())), test_image, shipped.features_px, config, limits
    )
    recording = Recording.of_answers(read_condensed(folder, costs_ms), previous.decode_px)
    names = tuple(map(str, range(recording.logits.shape[2])))  # the places of the classes differ between images
    loaded = LoadedRecording(recording, times, previous, names, labels_from=shipped.images.labels_from)
    clock = FeatureClock([test_image], shipped.features_px, limits, times.features_ms)
    # Choosing the features of the chain again would take longer than everything else.
    chain = ChainKind(shipped.parts[CHAIN].facts.features) if CHAIN in shipped.parts else ChainKind()
    kinds = tuple(chain if kind.name == CHAIN else kind for kind in kinds_with(shipped.parts))
    retimed = calibrate(loaded, InstallRequest(kinds=kinds), clock, report).calibration
    return msgspec.structs.replace(
        retimed,
        temperatures={name: answers[name].temperature for name in recording.models},
        wrong_at_most=shipped.wrong_at_most,
        # Promises that were tested on unknown images cannot be tested again: those images do not ship.
        promises={} if shipped.images.unknown else retimed.promises,
        because=f"{retimed.because}; based on the times of this machine and the answers that ship with the models",
    )


def _synthetic_image(decode_px: int, limits: image.Limits) -> CutImage:
    """Return a synthetic image, decoded from JPEG: latencies depend on its size, hardly on its content."""
    y, x = np.mgrid[: SIZE_PX[0], : SIZE_PX[1]]
    bgr = np.stack([x // 2 % 256, y // 2 % 256, (x // 32 + y // 32) % 2 * 255], axis=2).astype(np.uint8)
    data = cv2.imencode(".jpg", bgr)[1].tobytes()
    return decode_cut(data, WHOLE, limits, decode_px)


def _measure_times(
    family: Family, test_image: CutImage, features_px: int, config: Config, limits: image.Limits
) -> tuple[dict[str, float], Times]:
    """Time each model with its preprocessing, and the extraction of all features, in turns under equal conditions.

    Return the median ms of each model, and the Times that a recording would have.
    """
    specs = {model.manifest.name: model.manifest.input for model in family.models}

    def run(name: str, engine: Engine) -> object:
        return engine.infer(image.model_input(test_image.photograph, specs[name]))

    conditions, noise_monitor = gather(config.power.sysfs), NoiseMonitor(config.power.sysfs)
    with loaded_models(family, config) as engines:
        runs: dict[str, Callable[[], object]] = {name: partial(run, name, engine) for name, engine in engines.items()}
        for work in runs.values():
            for _ in range(_WARM_UPS):
                work()
        runs[""] = partial(test_image.extract, limits, features_px)
        durations_ms = run_by_turns(runs, MOST_ROUNDS, BUDGET_S, LEAST_ROUNDS)
        noise_monitor.look()
    median_ms = {name: median(values) for name, values in durations_ms.items()}
    features_ms = median_ms.pop("")
    noise_reason = "; ".join(reason for reason in (noise_monitor.reason(), describe_noise(durations_ms)) if reason)
    return median_ms, Times(features_ms, conditions.described(), noise_reason or None, energy_reason=_UNKNOWN_ENERGY)
