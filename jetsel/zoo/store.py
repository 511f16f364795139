"""Finds the models on this device: which folders are read, and the families that their manifests name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.config import Models
from jetsel.base.errors import ConfigError, ManifestError, UnknownModelError, did_you_mean
from jetsel.base.files import read_bounded, sha256_of
from jetsel.base.state import agent_folder, state_folder
from jetsel.base.weights import HeadFile, Weights
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import Manifest, read_manifest

MAX_WEIGHTS_BYTES = 2**31 - 1  # protobuf's own limit: a larger file is no ONNX file

STARTER = Path(__file__).parent / "starter"
"""The family that ships with jetsel."""

PULLED = Path(__file__).parent / "imagenet"
"""What ships of the family that `jetsel models pull efficientnet-lite` adds."""


@dataclass(frozen=True)
class Model:
    """One model: what its manifest says, and the file that it was read from, in whose folder the weights lie."""

    manifest: Manifest
    manifest_path: Path

    @property
    def directory(self) -> Path:
        """The folder that manifest, labels and weights lie in."""
        return self.manifest_path.parent

    @property
    def path(self) -> Path:
        """The weights; `verify` before opening them."""
        return self.directory / self.manifest.file

    def others(self) -> dict[str, bytes]:
        """Return the content of each of `Manifest.others`, by its name."""
        return {name: (self.directory / name).read_bytes() for name in self.manifest.others}

    def weights(self, classes: int) -> Weights:
        """Return what a backend needs to load the model; classes: of its family's labels."""
        manifest = self.manifest
        height_px, width_px = manifest.input.height_px, manifest.input.width_px
        head = manifest.head
        return Weights(
            manifest.name,
            self.path,
            manifest.sha256,
            height_px,
            width_px,
            classes,
            None if head is None else HeadFile(self.directory / head.file, head.backbone_classes),
        )


@dataclass(frozen=True)
class Family:
    """Models that answer alike at several costs, cheapest first by Manifest.cost_ms."""

    name: str
    labels: Labels
    models: tuple[Model, ...]

    @property
    def calibration(self) -> Path:
        """The folder of the calibration that came with the models: beside them, or in jetsel for a pulled family."""
        is_pulled = any((model.manifest.recipe or "").startswith("efficientnet-lite ") for model in self.models)
        return (PULLED if is_pulled else self.models[0].directory) / "calibration"

    @property
    def decode_px(self) -> int:
        """The shorter side below which no photograph of this family is decoded: the largest that a model takes."""
        return max(model.manifest.input.shorter_px for model in self.models)


@dataclass(frozen=True)
class Broken:
    """A manifest or a folder that is not used, and why; the reason does not begin with the path again."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Zoo:
    """Every family that was found, by name, and what was refused."""

    families: dict[str, Family]
    broken: tuple[Broken, ...]

    def find(self, name: str, family: str | None) -> tuple[Family, Model]:
        """Return the one model of this name, in this family or in any.

        Raises UnknownModelError for none or several.
        """
        owners = [
            (names, model)
            for names in self.families.values()
            for model in names.models
            if model.manifest.name == name and family in (None, names.name)
        ]
        if not owners:
            where = "" if family is None else f" in family {family}"
            names = [model.manifest.name for one in self.families.values() for model in one.models]
            near = did_you_mean(name, names)
            raise UnknownModelError(f"there is no model {name}{where}{near}: see jetsel models list")
        if len(owners) > 1:
            several = " or ".join(names.name for names, _ in owners)
            raise UnknownModelError(f"several families have a model {name}: use --family {several}")
        return owners[0]


def scan(directories: Iterable[Path]) -> Zoo:
    """Read every `*.json` of these folders, in the order given and then by file name.

    What cannot be used is listed as broken and hides nothing else. If two manifests contradict each other (one model
    name twice in a family, or one family name for two lists of labels) the one read first stands: list the folders
    that you trust first.
    """
    labels: dict[str, Labels] = {}
    models: dict[str, list[Model]] = {}
    broken: list[Broken] = []
    for directory in directories:
        try:
            paths = sorted(path for path in directory.iterdir() if path.suffix == ".json")
        except OSError as error:
            reason = f"it cannot be read: {error.strerror}; make the folder, or take it out of models.paths"
            broken.append(Broken(directory, reason))
            continue
        for path in paths:
            try:
                _take_in(path, labels, models)
            except ManifestError as error:  # noqa: PERF203  # what is wrong with one hides no other
                broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
    families = {
        name: Family(name, labels[name], tuple(sorted(family_models, key=_cost)))
        for name, family_models in models.items()
    }
    return Zoo({name: family for name, family in families.items() if family.models}, tuple(broken))


def verify(model: Model) -> bytes:
    """Return the weights, read once; raises ManifestError unless they are those that the manifest means, by their hash.

    Whether they are all in this file was seen when the model was added, see zoo.onnx_model.
    """
    try:
        content = read_bounded(model.path, MAX_WEIGHTS_BYTES)
    except OSError as error:
        raise ManifestError(f"{model.path}: cannot be read: {error.strerror}; put the weights there") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != model.manifest.sha256:
        raise ManifestError(
            f"{model.path}: sha256 is {digest}, but the manifest of {model.manifest.name} has "
            f"{model.manifest.sha256}; copy the file again, or write the new sha256 into the manifest"
        )
    for name, sha256 in model.manifest.others.items():
        if sha256_of(model.directory / name) != sha256:
            raise ManifestError(f"{model.directory / name}: sha256 does not match its manifest: train the head again")
    return content


def _take_in(path: Path, labels: dict[str, Labels], models: dict[str, list[Model]]) -> None:
    """Add the model of one manifest to those of its family, the first of which brought the labels.

    Raises ManifestError, and then nothing was added.
    """
    _refuse_a_way_out(path, "manifest", path.name)
    manifest = read_manifest(path)
    theirs = Labels.read(_beside(path, "labels", manifest.labels))
    for name in manifest.files:
        _beside(path, "file", name)
    family, others = manifest.family, models.get(manifest.family, [])
    if others and labels[family].sha256 != theirs.sha256:
        raise ManifestError(
            f"{path}: family: {family!r} has other labels in {others[0].manifest_path}; models of one family share "
            "their labels file, byte for byte: give this one another family name, or the same labels"
        )
    for other in others:
        if other.manifest.name == manifest.name:
            raise ManifestError(
                f"{path}: name: family {family!r} has {manifest.name!r} in {other.manifest_path}; choose another name"
            )
    labels.setdefault(family, theirs)
    models.setdefault(family, []).append(Model(manifest, path))


def _cost(model: Model) -> tuple[float, str]:
    return model.manifest.cost_ms, model.manifest.name


def _beside(manifest: Path, key: str, name: str) -> Path:
    """Return the file in the manifest's folder; raises ManifestError if there is none, or a link out of there."""
    path = _refuse_a_way_out(manifest, key, name)
    if not path.is_file():
        raise ManifestError(f"{manifest}: {key}: there is no file {name} beside the manifest; put it there")
    return path


def _refuse_a_way_out(manifest: Path, key: str, name: str) -> Path:
    """Return what stands in the manifest's folder; raises ManifestError if it is a link out of there."""
    path = manifest.parent / name
    if path.resolve().parent != manifest.parent.resolve():
        raise ManifestError(f"{manifest}: {key}: {name} is a link out of its folder; put the file itself there")
    return path


def model_folders(models: Models, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders to scan, those that are trusted first: the starter family's, models.paths, the owner's own.

    The owner's own (see `own_folder`) is left out if it is not there. If a fleet's plan is installed, its folders
    stand in the place of the starter family's and of the owner's own: the plan says which models there are.
    """
    planned = planned_folders(environment)
    if planned:
        return [*planned, *map(Path, models.paths)]
    folders = [*([STARTER] if models.starter else []), *map(Path, models.paths)]
    own = own_folder(environment)
    if _stands(own) and own not in folders:
        folders.append(own)
    return folders


def planned_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folder of each family that `jetsel agent` has installed, in the plan's order; see planned_name."""
    current = agent_folder(environment) / "installed" / "current"
    try:
        return sorted(path for path in current.iterdir() if path.is_dir()) if _stands(current) else []
    except FileNotFoundError:
        raise ConfigError(
            f"{current}: does not point to a folder: remove it, and run `jetsel agent run`, which installs the plan "
            "again"
        ) from None


def planned_name(place: int, family: str) -> str:
    """Return what the folder of a plan's family is called, which keeps the order."""
    return f"{place:03d}-{family}"


def planned_families(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the families of the plan in use, in its order."""
    return [path.name.partition("-")[2] for path in planned_folders(environment)]


def own_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where models are added unless the configuration names a folder: `models`, see state.state_folder."""
    return state_folder("models", environment)


def _stands(folder: Path) -> bool:
    """Whether it is there; one that this user may not enter is, so that the scan says so."""
    try:
        folder.lstat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True
