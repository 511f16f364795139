"""What `jetsel train-multiplexer` has done: models recorded, and a multiplexer made of what they said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.command import Job, record, recording_path
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.metrics import area_under_curve
from jetsel.calibrate.recording import Recording
from jetsel.cli.joint_training import Jointly, graph_of, joint_of, names_of
from jetsel.cli.models.placed import first_writable
from jetsel.errors import CalibrationError, UnknownModelError, did_you_mean, pip_install
from jetsel.image import InputSpec, read_file
from jetsel.train.optimize.facts import facts_of
from jetsel.train.optimize.graph import operations
from jetsel.train.optimize.photographs import pixels
from jetsel.zoo import Model

if TYPE_CHECKING:
    from jetsel.cli.family_calibrations import FamilyCalibrations
    from jetsel.cli.progress import Output
    from jetsel.train.multiplexer.making import Made
    from jetsel.train.multiplexer.weigher import Examples

FOLDS = 5
NEEDS_TORCH = f"training a multiplexer needs torch: {pip_install('export')}"
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
    joint: Jointly | None
    seed: int


@dataclass(frozen=True, eq=False)
class Found:
    """What came of it.

    areas: of each cut, the area under the curve by which it tells where the cheapest model is right; own_area: that of
    the model's confidence; None where it is right on all photographs, or on none. joint: names of models that were
    trained jointly.
    """

    multiplexer: Model
    made: Made
    photographs: int
    cheapest: str
    cheapest_ms: float
    areas: list[float | None]
    own_area: float | None
    joint: tuple[str, ...]


def train(find: Callable[[], FamilyCalibrations], asked: Asked, output: Output) -> Found:
    """Train a multiplexer of one family and put it beside the models. find: the family as it is. Raises JetselError."""
    try:
        from jetsel.train.multiplexer import adding, making, weigher
    except ImportError as error:
        raise CalibrationError(f"{NEEDS_TORCH} ({error})") from error
    calibrations, together = find(), None
    if asked.joint is not None:
        together = joint_of(calibrations, asked.models, asked.joint, output)
        calibrations = find()  # with the models that were added
    path = recording_path(calibrations.folder, calibrations.family, asked.photos)
    job = replace(calibrations.job(path, asked.photos, asked.label_map), multiplexer=None)
    names = names_of(job.served, asked.models if together is None else together.models)
    with output.interruptible() as stop:
        loaded = record(job, output.step, stop)
    said = loaded.recording.of_models(names)
    stem = _stem(job, asked, said)
    levels = _levels(job, said, stem.manifest.input, output)
    costs = _costs(asked.costs, loaded.recording, job.served, said.models)
    projected = None
    if together is not None:
        projected = together.projected(_levels(job, said, together.spec, output), said.models)
    right, likely = said.right("top1"), said.likely(fit_temperatures(said))

    def examples_of(pooled: NDArray[np.float32]) -> Examples:
        return weigher.Examples(pooled, right, likely, costs, projected)

    groups = np.arange(len(said.classes)) if said.groups is None else said.groups
    fold_of = assign_folds(groups, FOLDS, asked.seed)
    spec, most = stem.manifest.input, operations(graph_of(job.served[said.models[0]]))
    made = making.make(graph_of(stem), most, spec, levels, examples_of, asked.loss, fold_of, asked.seed, output.step)
    words = (
        f"{100 * made.cut.share:.0f} % of the multiply-accumulates of {said.models[0]}, loss {asked.loss}, on "
        f"{len(right)} photographs, seed {asked.seed}"
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


def _stem(job: Job, asked: Asked, said: Recording) -> Model:
    """Return the model whose first layers are taken: the cheapest where none is named."""
    if asked.stem is not None and asked.stem not in job.served:
        raise UnknownModelError(f"--stem: there is no model {asked.stem}{did_you_mean(asked.stem, job.served)}")
    return job.served[asked.stem or said.models[0]]


def _levels(job: Job, said: Recording, spec: InputSpec, output: Output) -> NDArray[np.uint8]:
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
    unknown = [name for name, count in counted.items() if not count]
    if unknown:
        raise CalibrationError(f"the operations of {', '.join(unknown)} cannot be told: say --costs ms")
    return np.array([float(counted[name] or 0) for name in names])
