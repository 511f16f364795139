"""Step 1 of `jetsel train-multiplexer --joint`: copies of models trained together, and added under new names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate import record as recording
from jetsel.cli.models.placed import first_writable
from jetsel.daemon.snapshot import limits_of
from jetsel.errors import CalibrationError, UnknownModelError, did_you_mean
from jetsel.state import state_folder
from jetsel.train.optimize.graph import for_size
from jetsel.train.optimize.photographs import pixels
from jetsel.zoo import Model
from jetsel.zoo.onnx_model import read_model

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import nn

    from jetsel.cli.family_calibrations import FamilyCalibrations
    from jetsel.cli.progress import Output
    from jetsel.image import InputSpec

SUFFIX = "-joint"


@dataclass(frozen=True)
class Jointly:
    """How models are trained together. photos: labelled ones; contrast: the weight of the contrastive loss."""

    photos: Path
    contrast: float
    epochs: int
    most_s: float
    seed: int


@dataclass(frozen=True, eq=False)
class Together:
    """Models that were trained jointly: their names, and the networks. spec: how photographs are kept for them."""

    models: tuple[str, ...]
    members: nn.ModuleList
    spec: InputSpec

    def projected(self, levels: NDArray[np.uint8], names: Sequence[str]) -> NDArray[np.float32]:
        """Return the projected embeddings of photographs as `spec` has them, (n, N, META), in the order of `names`."""
        from jetsel.train.multiplexer.joint import projected_of

        return projected_of(self.members, levels)[:, [self.models.index(name) for name in names]]


def joint_of(calibrations: FamilyCalibrations, wanted: Sequence[str], asked: Jointly, output: Output) -> Together:
    """Train copies of the models together, or go on, and add them under names of their own. Raises JetselError."""
    import torch

    from jetsel.train.loop import Course
    from jetsel.train.multiplexer import joint
    from jetsel.train.optimize.network import network_of

    family, served = calibrations.served()
    own = [name for name in served if not name.endswith(SUFFIX)]  # what an earlier run added is not trained on again
    parents = [served[name] for name in names_of(served, wanted or own)]
    _refuse_left_out(calibrations, parents)
    headed = [parent.manifest.name for parent in parents if parent.manifest.head is not None]
    if headed:
        raise CalibrationError(
            f"{', '.join(headed)}: a head of its own is no part of the network: leave --joint out, or name other models"
        )
    given = recording.find(asked.photos, family.labels, None, need_labels=True).photographs
    spec = joint.seen_by_all([parent.manifest.input for parent in parents])
    limits = limits_of(calibrations.config)
    levels, rows = pixels([one.path for one in given], spec, limits, family.decode_px, output.step)
    pupils = joint.Pupils(levels, np.array([given[row].class_number for row in rows], np.int64))
    torch.manual_seed(asked.seed)
    members = torch.nn.ModuleList(
        joint.Member(network_of(graph_of(parent), parent.manifest.name), parent.manifest.input) for parent in parents
    )
    said = [parent.manifest.identity for parent in parents], str(asked.photos.resolve()), asked
    folder = state_folder("multiplexer") / hashlib.sha256(repr(said).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    course = Course(len(levels), asked.epochs, asked.most_s, asked.seed, joint.RATE)
    done = joint.train_jointly(members, pupils, course, asked.contrast, folder / "joint.pt", output.step)
    words = (
        f"trained on jointly with {', '.join(parent.manifest.name for parent in parents)}, contrastive loss times "
        f"{asked.contrast:g}, {done.epochs} epochs of {len(levels)} photographs in {done.seconds / 60:.1f} min, seed "
        f"{asked.seed}"
    )
    names = [
        _added(calibrations, parent, member.net, words, folder) for parent, member in zip(parents, members, strict=True)
    ]
    return Together(tuple(names), members, spec)


def _refuse_left_out(calibrations: FamilyCalibrations, parents: Sequence[Model]) -> None:
    """Raise CalibrationError, before anything is trained, where the configuration would not have it served."""
    only = calibrations.config.models.only
    lost = [f"{parent.manifest.name}{SUFFIX}" for parent in parents if f"{parent.manifest.name}{SUFFIX}" not in only]
    if only and lost:
        raise CalibrationError(f"[models] only leaves out {', '.join(lost)}, which --joint adds: name them there first")


def _added(calibrations: FamilyCalibrations, parent: Model, net: nn.Module, words: str, work: Path) -> str:
    """Export one of them, put it beside its family, and return its name."""
    from jetsel.train.multiplexer.adding import add_joint
    from jetsel.zoo.export import export

    name, spec = f"{parent.manifest.name}{SUFFIX}"[:64], parent.manifest.input
    file, config = work / f"{name}.onnx", calibrations.config
    export(net, file, spec.height_px, spec.width_px)
    family, _ = calibrations.served()
    add_joint(family, parent, name, file.read_bytes(), words, first_writable(config), config.models.threads)
    return name


def names_of(served: Mapping[str, Model], wanted: Sequence[str]) -> list[str]:
    """Return the models that are meant, all where none is named.

    Raises UnknownModelError for one that is not there, CalibrationError where they are fewer than two.
    """
    unknown = [name for name in wanted if name not in served]
    if unknown:
        raise UnknownModelError(
            f"there is no model {unknown[0]}{did_you_mean(unknown[0], served)}: {', '.join(served)}"
        )
    names = list(wanted or served)
    if len(names) < 2:
        raise CalibrationError("a multiplexer chooses among two models at the least: add one, or name more")
    return names


def graph_of(model: Model) -> ModelProto:
    """Return a model's graph for its own input; raises ManifestError where its file cannot be read."""
    return for_size(read_model(model.path), model.manifest.input.height_px, model.manifest.input.width_px)
