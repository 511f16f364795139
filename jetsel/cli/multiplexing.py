"""What `jetsel train-multiplexer` has done: models trained jointly, recorded, and a multiplexer made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate import record as recording
from jetsel.calibrate.command import Job, record, recording_path
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.metrics import area_under_curve
from jetsel.calibrate.recording import Recording
from jetsel.cli.models.placed import first_writable
from jetsel.errors import CalibrationError, UnknownModelError, did_you_mean
from jetsel.image import read_file
from jetsel.state import state_folder
from jetsel.train.optimize.facts import facts_of
from jetsel.train.optimize.graph import for_size
from jetsel.train.optimize.photographs import pixels
from jetsel.zoo import Model
from jetsel.zoo.onnx_model import read_model

if TYPE_CHECKING:
    from onnx import ModelProto

    from jetsel.cli.family_calibrations import FamilyCalibrations
    from jetsel.cli.progress import Output
    from jetsel.train.multiplexer.making import Made
    from jetsel.train.multiplexer.weigher import Examples

FOLDS = 5
NEEDS_TORCH = "training a multiplexer needs torch: pip install 'jetsel[export]'"
Costs = Literal["ms", "operations", "mj"]


@dataclass(frozen=True)
class Asked:
    """What the owner asked for, as `jetsel train-multiplexer --help` has it."""

    photos: Path
    label_map: Path | None
    models: tuple[str, ...]
    loss: Literal["right", "ensemble"]
    costs: Costs
    stem: str | None
    joint: Path | None
    contrast: float
    epochs: int
    most_s: float
    seed: int


@dataclass(frozen=True, eq=False)
class Found:
    """What came of it.

    areas: of each cut, the area under the curve by which it tells where the cheapest model is right; own_area: that of
    the model's confidence. joint: names of models that were trained jointly.
    """

    multiplexer: Model
    made: Made
    photographs: int
    cheapest: str
    cheapest_ms: float
    areas: list[float]
    own_area: float
    joint: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Together:
    """Models that were trained jointly, and their projected embeddings of photographs, by path."""

    models: tuple[str, ...]
    members: Any
    spec: Any


def train(find: Callable[[], FamilyCalibrations], asked: Asked, output: Output) -> Found:
    """Train a multiplexer of one family and put it beside the models. find: the family as it is. Raises JetselError."""
    try:
        from jetsel.train.multiplexer import adding, making, weigher
    except ImportError as error:
        raise CalibrationError(f"{NEEDS_TORCH} ({error})") from error
    calibrations, together = find(), None
    if asked.joint is not None:
        together = joint_of(calibrations, asked, output)
        calibrations = find()  # with the models that were added
    path = recording_path(calibrations.folder, calibrations.family, asked.photos)
    job = replace(calibrations.job(path, asked.photos, asked.label_map), multiplexer=None)
    names = _names(job.served, asked.models if together is None else together.models)
    with output.interruptible() as stop:
        loaded = record(job, output.step, stop)
    said = loaded.recording.of_models(names)
    stem = _stem(job, asked, said)
    levels = _levels(job, said, stem.manifest.input, output)
    costs = _costs(asked.costs, loaded.recording, job.served, said.models)
    projected = None if together is None else _projected(job, together, said, output)
    right, likely = said.right("top1"), said.likely(fit_temperatures(said))

    def examples_of(pooled: NDArray[np.float32]) -> Examples:
        return weigher.Examples(pooled, right, likely, costs, projected)

    groups = np.arange(len(said.classes)) if said.groups is None else said.groups
    fold_of = assign_folds(groups, FOLDS, asked.seed)
    spec = stem.manifest.input
    graph = _graph(stem)
    made = making.make(graph, spec, levels, examples_of, asked.loss, fold_of, asked.seed, output.step)
    words = (
        f"up to {100 * made.cut.share:.0f} % of its multiply-accumulates, loss {asked.loss}, on {len(right)} "
        f"photographs, seed {asked.seed}"
    )
    held_out = dict(zip(_digests(job, said), made.held_out, strict=True))
    models = [job.served[name] for name in said.models]
    folder, threads = first_writable(job.config), job.config.models.threads
    added = adding.add_multiplexer(job.family, stem, models, made, asked.loss, held_out, words, folder, threads)
    first = right[:, 0]
    return Found(
        added,
        made,
        len(right),
        said.models[0],
        models[0].manifest.cost_ms,
        [area_under_curve(first, one.said[:, 0]) for one in made.tried],
        area_under_curve(first, said.confidences("top1", fit_temperatures(said))[:, 0]),
        () if together is None else together.models,
    )


def joint_of(calibrations: FamilyCalibrations, asked: Asked, output: Output) -> Together:
    """Train copies of the models together, or go on, and add them under names of their own. Raises JetselError."""
    import torch

    from jetsel.daemon.snapshot import limits_of
    from jetsel.train.loop import Course
    from jetsel.train.multiplexer import adding, joint
    from jetsel.train.optimize.network import network_of
    from jetsel.zoo.export import export

    assert asked.joint is not None
    family, served = calibrations.served()
    parents = [served[name] for name in _names(served, asked.models)]
    headed = [parent.manifest.name for parent in parents if parent.manifest.head is not None]
    if headed:
        raise CalibrationError(
            f"{', '.join(headed)}: a head of its own is no part of the network: leave --joint out, or name other models"
        )
    given = recording.find(asked.joint, family.labels, None, need_labels=True)
    spec = joint.seen_by_all([parent.manifest.input for parent in parents])
    limits = limits_of(calibrations.config)
    levels, rows = pixels([one.path for one in given.photographs], spec, limits, family.decode_px, output.step)
    classes = np.array([given.photographs[row].class_number for row in rows], np.int64)
    torch.manual_seed(asked.seed)
    members = torch.nn.ModuleList(
        joint.Member(network_of(_graph(parent), parent.manifest.name), parent.manifest.input) for parent in parents
    )
    said = [parent.manifest.identity for parent in parents], str(asked.joint.resolve()), asked.contrast, asked.epochs
    folder = state_folder("multiplexer") / hashlib.sha256(repr(said).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    course = Course(len(levels), asked.epochs, asked.most_s, asked.seed, joint.RATE)
    done = joint.train_jointly(
        members, joint.Pupils(levels, classes), course, asked.contrast, folder / "joint.pt", output.step
    )
    words = (
        f"trained on jointly with {', '.join(parent.manifest.name for parent in parents)}, contrastive loss times "
        f"{asked.contrast:g}, {done.epochs} epochs of {len(levels)} photographs in {done.seconds / 60:.1f} min, seed "
        f"{asked.seed}"
    )
    names = []
    for parent, member in zip(parents, members, strict=True):
        name = f"{parent.manifest.name}-joint"[:64]
        file = folder / f"{name}.onnx"
        export(member.net, file, parent.manifest.input.height_px, parent.manifest.input.width_px)
        into, threads = first_writable(calibrations.config), calibrations.config.models.threads
        adding.add_joint(family, parent, name, file.read_bytes(), words, into, threads)
        names.append(name)
    return Together(tuple(names), members, spec)


def _projected(job: Job, together: Together, said: Recording, output: Output) -> NDArray[np.float32]:
    """Return the projected embeddings (n, N, META), in the order of the recording's models."""
    from jetsel.train.multiplexer.joint import projected_of

    found = projected_of(together.members, _levels(job, said, together.spec, output))
    return found[:, [together.models.index(name) for name in said.models]]


def _names(served: Mapping[str, Model], wanted: tuple[str, ...]) -> list[str]:
    """Return the models that are meant; raises UnknownModelError for one that is not there."""
    unknown = [name for name in wanted if name not in served]
    if unknown:
        raise UnknownModelError(
            f"there is no model {unknown[0]}{did_you_mean(unknown[0], served)}: {', '.join(served)}"
        )
    names = list(wanted or served)
    if len(names) < 2:
        raise CalibrationError("a multiplexer chooses among two models at the least: add one, or name more")
    return names


def _stem(job: Job, asked: Asked, said: Recording) -> Model:
    """Return the model whose first layers are taken: the cheapest where none is named."""
    if asked.stem is not None and asked.stem not in job.served:
        raise UnknownModelError(f"--stem: there is no model {asked.stem}{did_you_mean(asked.stem, job.served)}")
    return job.served[asked.stem or said.models[0]]


def _graph(model: Model) -> ModelProto:
    return for_size(read_model(model.path), model.manifest.input.height_px, model.manifest.input.width_px)


def _levels(job: Job, said: Recording, spec: Any, output: Output) -> NDArray[np.uint8]:
    """Return the recorded photographs as an input has them; raises CalibrationError where one is gone by now."""
    paths = [Path(path) for path in said.paths]
    levels, rows = pixels(paths, spec, job.limits, job.family.decode_px, output.step)
    if len(rows) < len(paths):
        raise CalibrationError(
            f"{len(paths) - len(rows)} of {len(paths)} photographs that were recorded cannot be read any more, or do "
            "not fit into memory: put them back, or name fewer"
        )
    return levels


def _digests(job: Job, said: Recording) -> list[str]:
    return [hashlib.sha256(read_file(Path(path), job.limits)).hexdigest() for path in said.paths]


def _costs(
    what: Costs, recorded: Recording, served: Mapping[str, Model], names: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return what each model costs, (N,); raises CalibrationError where it is not known."""
    if what != "operations":
        costs = recorded.costs("time" if what == "ms" else "energy")
        return np.array([costs[recorded.models.index(name)] for name in names])
    counted = {name: facts_of(served[name]).operations for name in names}
    unknown = [name for name, operations in counted.items() if not operations]
    if unknown:
        raise CalibrationError(f"the operations of {', '.join(unknown)} cannot be told: say --costs ms")
    return np.array([float(counted[name] or 0) for name in names])
