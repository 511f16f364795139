"""What `jetsel models optimize` has done, part after part: candidates made, recorded beside the family, and judged."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jetsel.base.config import Config, host_settings
from jetsel.base.errors import CalibrationError, JetselError, UnknownModelError, did_you_mean
from jetsel.base.files import write
from jetsel.base.names import RULE, is_plain
from jetsel.base.weights import Weights
from jetsel.calibrate import record as recording
from jetsel.calibrate.calibrating import Calibrated
from jetsel.calibrate.candidates import Compare, Verdict, judged
from jetsel.calibrate.goal import Goal
from jetsel.calibrate.install import Job, fit, record
from jetsel.cli.models.candidates import BACKEND, Candidate, order_of
from jetsel.cli.models.samples import BuiltInPhotographs, PhotographFolder
from jetsel.engines.building.builder import Builder
from jetsel.engines.trying import try_run
from jetsel.site.families import limits_of, served_models
from jetsel.train.optimize.making import NEEDS_TORCH, FileFacts, facts_of, make, name_of
from jetsel.train.optimize.material import Material, OptimizePlan, check_enough, drawn
from jetsel.train.optimize.recipes import FACTORISING, PRUNING, Recipe, recipes
from jetsel.zoo import Family, Model

if TYPE_CHECKING:
    from jetsel.cli.terminal import Output

LEARNED_FROM = 1 / 3  # of the photographs, if no others are named to learn from
FEWEST_JUDGED = 100
MOST_COMPARED = 200  # photographs on which an engine is compared with ONNX Runtime
THETA_POINTS = 0.5
MARGIN = 0.8  # operations save less time than their share: what moves numbers stays
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class OptimizeRequest:
    """What the owner asked for, as `jetsel models optimize --help` has it."""

    photos: Path
    learn_on: Path | None
    label_map: Path | None
    methods: Sequence[str]
    max_drop: float
    target_ms: float | None
    target_mb: float | None
    epochs: int
    most_s: float
    add: Sequence[str] = ()


@dataclass(frozen=True)
class Optimized:
    """What came of it. models: the family as it is served, and the candidates; failed: candidate -> why there is none.

    engines: model -> ms on the device by TensorRT, or why there is none; a sentence for all if TensorRT is not here.
    """

    verdict: Verdict
    models: Mapping[str, Model]
    failed: Mapping[str, str]
    facts: Mapping[str, FileFacts]
    engines: Mapping[str, float | str] | str
    noisy: str | None


def optimize(
    family: Family, parent: Model, values: Config, asked: OptimizeRequest, folder: Path, output: Output
) -> Optimized:
    """Make candidates, record them beside the family on photographs held out, and judge them.

    folder: where everything is kept, so that the same command goes on. Raises JetselError.
    """
    if {*PRUNING, *FACTORISING} & set(asked.methods) and importlib.util.find_spec("torch") is None:
        raise CalibrationError(NEEDS_TORCH)
    share = _share(asked, parent.weights(len(family.labels.wnids)).backbone, values.models.threads)
    planned = recipes(asked.methods, parent.manifest.input, share)
    _check_added(asked, family, parent, planned)
    given = recording.find(asked.photos, family.labels, asked.label_map, need_labels=True)
    paths = {one.path: one.class_number for one in given.photographs}
    learn, held = _parted(asked, family, list(paths))
    check_enough(len(learn))
    folder.mkdir(parents=True, exist_ok=True)
    _same_photographs(asked, folder)
    plan = OptimizePlan(
        parent,
        family,
        learn,
        limits_of(values),
        folder,
        threads=values.models.threads,
        symmetric=_backend(values, parent) == BACKEND,
        epochs=asked.epochs,
        most_s=asked.most_s,
    )
    made = make(planned, Material(plan, output.step))
    engines = _engines(family, [parent, *made.models.values()], values, asked.photos)
    failed, models = dict(made.failed), dict(made.models)
    if plan.symmetric and isinstance(engines, dict):  # then they are served by TensorRT, and recorded on it
        failed |= {name: said for name, said in engines.items() if isinstance(said, str) and name in models}
    served = {**served_models(family, values), parent.manifest.name: parent}
    shown = {**served, **{name: model for name, model in models.items() if name not in failed}}
    whole = replace(family, models=tuple(sorted(shown.values(), key=lambda one: one.manifest.cost_ms)))
    listed = _listed(held, paths, family, folder)
    job = Job(whole, shown, _as_parent(values, parent, shown), plan.limits, folder / "recording.sqlite", listed)
    with output.interruptible() as stop:
        loaded = record(job, output.step, stop)
    facts = {name: facts_of(model) for name, model in shown.items()}
    refused = _over_target(asked, loaded.recording.costs_ms, facts)
    compare = _comparing(job, loaded.recording.models, output)
    verdict = judged(
        loaded.recording, parent.manifest.name, list(served), asked.max_drop, THETA_POINTS, refused, compare
    )
    return Optimized(verdict, shown, failed, facts, engines, loaded.times.noisy)


def _comparing(job: Job, models: Sequence[str], output: Output) -> Compare:
    """Return what fits and compares every policy over some of the recorded models."""

    def compare(names: Sequence[str]) -> Calibrated:
        only = recording.load(job.path, job.family, tuple(name for name in models if name in names))
        return fit(job, only, Goal(), "top1", THETA_POINTS, None, None, output.step)

    return compare


def _check_added(asked: OptimizeRequest, family: Family, parent: Model, planned: Sequence[Recipe]) -> None:
    """Raise UnknownModelError if a candidate to add will not be made, CalibrationError if a name cannot be used."""
    names = [name_of(parent, recipe) for recipe in planned]
    if too_long := [name for name in names if not is_plain(name)]:
        raise CalibrationError(
            f"{too_long[0]} cannot be a name: {RULE}; add {parent.manifest.name} under a shorter one"
        )
    taken = {model.manifest.name: model.directory for model in family.models}
    for name in asked.add:
        if name in taken:
            repair = f"remove it first with: jetsel models remove {name} --family {family.name}"
            raise CalibrationError(f"--add: {name} exists in {taken[name]} already; {repair}")
        if name not in names:
            near = did_you_mean(name, names)
            raise UnknownModelError(f"--add: there is no candidate {name}{near}; there are {', '.join(names)}")


def _share(asked: OptimizeRequest, parent: Weights, threads: int) -> float | None:
    """Return how much of the operations may stay for the targets, None without one; raises CalibrationError."""
    shares = []
    if asked.target_ms is not None:
        shares.append(asked.target_ms / try_run(parent, threads).latency_ms)
    if asked.target_mb is not None:
        shares.append(asked.target_mb * 1e6 / parent.path.stat().st_size)
    if not shares:
        return None
    if min(shares) >= 1:
        raise CalibrationError(f"{parent.name} meets the target already: choose a smaller target, or none")
    return max(round(MARGIN * min(shares), 2), LEAST_SHARE)


def _parted(asked: OptimizeRequest, family: Family, paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the images to learn from, and those to judge by; raises CalibrationError if these are too few."""
    if asked.learn_on is None:
        learn, held = drawn(paths, LEARNED_FROM)
    else:
        others = recording.find(asked.learn_on, family.labels, None, need_labels=False)
        judge = set(paths)
        learn, held = [one.path for one in others.photographs if one.path not in judge], list(paths)
    if len(held) < FEWEST_JUDGED:
        raise CalibrationError(
            f"{asked.photos}: only {len(held)} images are left for the evaluation, and {FEWEST_JUDGED} are the "
            "minimum: add images, or name other images to learn from with --learn-on"
        )
    return learn, held


def _same_photographs(asked: OptimizeRequest, folder: Path) -> None:
    """Keep which photographs candidates are made and judged by; raises CalibrationError if they were others before.

    Else some would be judged by what they have learned from.
    """
    said = msgspec.json.encode([str(path and path.resolve()) for path in (asked.photos, asked.learn_on)])
    kept = folder / "photographs.json"
    if kept.exists() and kept.read_bytes() != said:
        others = kept.read_text(encoding="utf-8")
        raise CalibrationError(
            f"{folder}: holds candidates made from other images, {others}: name those images, or another folder with "
            "--work"
        )
    write(kept, said)


def _listed(held: Sequence[Path], classes: Mapping[Path, int | None], family: Family, folder: Path) -> Path:
    """Write a CSV of the photographs to judge by; return the file."""
    path = folder / "judged.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("path", "label"))
        for one in held:
            number = classes[one]
            rows.writerow((one, "" if number is None else family.labels.wnids[number]))
    return path


def _as_parent(values: Config, parent: Model, names: Iterable[str]) -> Config:
    """Return the configuration with candidates run by the parent's backend."""
    backend = _backend(values, parent)
    backends = {**dict.fromkeys(names, backend), **values.models.backends}
    return msgspec.structs.replace(values, models=msgspec.structs.replace(values.models, backends=backends))


def _backend(values: Config, model: Model) -> str:
    return values.models.backends.get(model.manifest.name, values.models.backend)


def _engines(family: Family, models: Sequence[Model], values: Config, photos: Path) -> dict[str, float | str] | str:
    """Build an engine of each model if TensorRT is at hand: its ms on the device, or why there is none.

    One sentence for all if TensorRT is not.
    """
    limits, decode_px = limits_of(values), family.decode_px
    try:
        builder = Builder(host_settings(values.host))
    except JetselError as error:
        return str(error)
    found: dict[str, float | str] = {}
    shown = PhotographFolder(photos, MOST_COMPARED, limits, decode_px) if photos.is_dir() else None
    compared = shown or BuiltInPhotographs(limits, decode_px)
    for model in models:
        one = Candidate(family.name, model, len(family.labels.wnids))
        try:
            plan = builder.standing(one.weights) or builder.build(order_of(one, compared), lambda: None, force=False)
            found[one.name] = plan.record.check.device_ms or "it reports no time on the device"
        except JetselError as error:
            found[one.name] = str(error)
    return found


def _over_target(
    asked: OptimizeRequest, costs_ms: Mapping[str, float], facts: Mapping[str, FileFacts]
) -> dict[str, str]:
    """Return the models that cost more than was asked for, and why."""
    found = {}
    for name, fact in facts.items():
        if asked.target_ms is not None and costs_ms[name] > asked.target_ms:
            found[name] = f"it takes {costs_ms[name]:.2f} ms, and --target-ms is {asked.target_ms:g}"
        if asked.target_mb is not None and fact.bytes > asked.target_mb * 1e6:
            found[name] = f"it has {fact.bytes / 1e6:.2f} MB, and --target-mb is {asked.target_mb:g}"
    return found
