"""Calibrate the starter family as it ships: `python -m calibration.starter.calibrate PHOTOS --test OTHERS`.

PHOTOS and OTHERS are folders with a folder for each class. Writes jetsel/zoo/starter/calibration, which was fitted on
PHOTOS alone; and into calibration/starter/results what was compared in cross-validation, the same with a TX2's times,
and what the calibration gives on OTHERS. Numbers alone: nothing of a photograph is kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jetsel import image
from jetsel.artefact.coding import save
from jetsel.calibrate.calibrating import Calibrated, calibrate
from jetsel.calibrate.fit.features import FeatureClock, decode_sample
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.judge.evaluating import evaluate, requested_policies
from jetsel.calibrate.judge.findings import ImageSample, Result
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.words import premodel_in_words
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import find_images
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.recording import LoadedRecording, Recording
from jetsel.calibrate.record.workers import Observer
from jetsel.features import WORKING_PX
from jetsel.policies.kind import Kind
from jetsel.policies.registry import USUAL
from jetsel.premodel.cascades import replay_cascade
from jetsel.zoo import STARTER, Family, scan

RESULTS = Path(__file__).parent / "results"
LIMITS = image.Limits(max_bytes=16_000_000, max_pixels=50_000_000)
WITHOUT_IMAGES: dict[str, Any] = {"differing": ImageSample(0, []), "classes": [], "doubtful": None}

# MobileNet v1 0.25, Inception v1, ResNet v1 50, Inception v3 and Inception v4 on a TX2, TensorRT 3 in FP16, in ms
# (NVIDIA-AI-IOT/tf_to_trt_image_classification at 1082295), given to our models by rank.
TX2_MS = {"xs": 2.67, "s": 7.98, "m": 15.7, "l": 26.3, "xl": 52.1}
NIGHT = "-night"  # ends the names of the models for the night, which take what those of the day take
# An assumption: a Cortex-A57 at 2 GHz takes so many times a server core's time for OpenCV and numpy.
TX2_CORE_FACTOR = 4.0


def of_the_day(family: Family) -> Family:
    """Return the family without its models for the night."""
    models = tuple(model for model in family.models if not model.manifest.name.endswith(NIGHT))
    return dataclasses.replace(family, models=models)


def recorded(
    family: Family,
    photos: Path,
    file: Path,
    features_px: int = WORKING_PX,
    plan: TimingPlan | None = None,
    sizes: Sequence[int] = (),
) -> LoadedRecording:
    """Record what is not recorded yet, and read it back; features_px: the pixels that features see at most.

    plan: how times are taken, None for the default. sizes: see `find_images`.
    """
    found = find_images(photos, family.labels, None, need_labels=True, sizes=sizes)
    file.parent.mkdir(parents=True, exist_ok=True)
    with loaded_models(family) as engines:
        every = frozenset(model.manifest.name for model in family.models)  # another machine may serve any of them
        options = RecordOptions(features_px=features_px, plan=plan or TimingPlan(), always_recorded=every)
        record(
            file, family, engines, found, options, Observer(lambda what, n, of: print(f"\r{what} {n}/{of}  ", end=""))
        )
    print()
    return load(file, family)


def fitted(
    family: Family,
    loaded: LoadedRecording,
    *,
    choice_factor: float = 1.0,
    kinds: Sequence[Kind] = USUAL,
    policy: str | None = None,
) -> Calibrated:
    """Fit and compare everything; choice_factor: how much slower than here features and choice are.

    policy: name of the default policy, even a chain that adds nothing; None for the best one.
    """
    images = decode_sample(loaded.recording.paths, family.decode_px, LIMITS)
    whole_ms = loaded.times.features_ms * choice_factor
    began = time.monotonic()
    found = calibrate(
        loaded,
        InstallRequest(policy=policy, choice_factor=choice_factor, kinds=kinds),
        FeatureClock(images, loaded.identity.features_px, LIMITS, whole_ms),
        lambda what, done, total: print(f"\r{what} {done}/{total}   ", end="", flush=True),
    )
    print(f"\rfitted and compared in {time.monotonic() - began:.0f} s   ")
    return found


def of_models(recording: Recording, names: Iterable[str]) -> Recording:
    """Return the recording of some models, cheapest first, without embeddings."""
    chosen = sorted(names, key=lambda name: (recording.costs_ms[name], name))
    return dataclasses.replace(
        recording,
        models=tuple(chosen),
        logits=recording.logits[[recording.models.index(name) for name in chosen]],
        costs_ms={name: recording.costs_ms[name] for name in chosen},
        embeddings=None,
    )


def as_on_a_tx2(loaded: LoadedRecording) -> LoadedRecording:
    """The recording with a TX2's times, by rank."""
    costs_ms = {name: TX2_MS[name.removesuffix(NIGHT)] for name in loaded.recording.models}
    recording = of_models(dataclasses.replace(loaded.recording, costs_ms=costs_ms), costs_ms)
    return dataclasses.replace(loaded, recording=recording)


def front_on(other: LoadedRecording, fitted_on: LoadedRecording, found: Calibrated) -> list[tuple[float, float, str]]:
    """Each budget's cascade, fitted on one recording, on another: mean ms, share right and models, if none beats it."""
    temperatures = found.calibration.temperatures
    table, others = fitted_on.recording.table(temperatures), other.recording.table(temperatures).outputs
    points = []
    for cascade in dict.fromkeys(table.cascades):
        right, ran = replay_cascade(cascade, others)
        models = " then ".join(table.models[rung] for rung in cascade.rungs)
        points.append((float((ran @ others.costs).mean()), float(right.mean()), models))
    return undominated(points)


def show(title: str, results: dict[str, Result]) -> None:
    """Print policies and bounds as Markdown."""
    print(f"\n{title}\n")
    print("| policy | top-1 % | top-5 % | mean ms | p95 ms | time / best single | runs of each model % |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name, result in results.items():
        runs = ", ".join(f"{model} {100 * share:.0f}" for model, share in result.runs.items() if share >= 0.005)
        print(
            f"| {name} | {100 * result.top1:.2f} | {100 * result.top5:.2f} | {result.time_ms.mean:.3f} "
            f"| {result.time_ms.p95:.3f} | {result.vs_best_single.time_ratio:.2f} | {runs} |"
        )


def keep(name: str, value: object) -> None:
    """Write one result as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def compared(found: Calibrated) -> dict[str, Result]:
    """Policies and bounds."""
    return found.findings.comparison.policies | found.findings.comparison.bounds


def main() -> None:
    """Record, fit, save, and judge on other photographs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="to fit on: a folder for each class")
    parser.add_argument("--test", type=Path, required=True, help="to judge on: the same layout, other photographs")
    parser.add_argument("--work", type=Path, default=Path("build/calibrate"), help="recordings (%(default)s)")
    parser.add_argument("--report", type=Path, help="write the report here, too")
    options = parser.parse_args()
    family = scan([STARTER]).families["starter"]
    loaded = recorded(family, options.photos, options.work / "calibrate.sqlite")
    found = fitted(family, loaded)
    save(found.calibration, STARTER / "calibration")
    keep("calibrate.json", msgspec.structs.replace(found.findings, installed=True, **WITHOUT_IMAGES))
    show(f"each of {found.calibration.images.count} photographs held out, in one of ten folds", compared(found))
    print(f"\n{found.findings.verdict}\nnoisy: {found.findings.noisy}")
    chain = found.findings.comparison.chain
    print("" if chain is None else premodel_in_words(chain))
    if options.report is not None:
        from jetsel.calibrate.report import render

        options.report.write_text(render(found.findings, LIMITS), encoding="utf-8")

    board = fitted(family, as_on_a_tx2(loaded), choice_factor=TX2_CORE_FACTOR)
    keep(
        "tx2-derived.json",
        msgspec.structs.replace(board.findings, conditions={"derived": "TX2 times"}, **WITHOUT_IMAGES),
    )
    show("derived: with the times of five TX2 models by rank, the chooser's cost times four", compared(board))

    other = recorded(family, options.test, options.work / "test.sqlite")
    clock = FeatureClock(
        decode_sample(other.recording.paths, family.decode_px, LIMITS),
        other.identity.features_px,
        LIMITS,
        other.times.features_ms,
    )
    policies = requested_policies(other.recording.models, found.calibration, list(found.findings.comparison.policies))
    judged = evaluate(other.recording, found.calibration, policies, clock)
    front = front_on(other, loaded, found)
    keep("test.json", judged._asdict() | {"front": front})
    print("\nfront: " + ", ".join(f"{100 * right:.1f} % in {ms:.2f} ms ({way})" for ms, right, way in front))
    show(f"on {len(other.recording.classes)} other photographs", judged.policies | judged.bounds)


if __name__ == "__main__":
    main()
