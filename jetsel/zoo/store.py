"""Find the models on this device: the folders to read, and the families that their manifests form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jetsel.base.config import Models
from jetsel.base.errors import ConfigError, ManifestError, UnknownModelError, did_you_mean
from jetsel.base.files import read_bounded, sha256_of
from jetsel.base.state import agent_folder, state_folder
from jetsel.base.weights import HeadFile, Weights
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import Manifest, read_manifest

MAX_WEIGHTS_BYTES = 2**31 - 1  # protobuf's limit: a larger file is no ONNX file
STARTER = Path(__file__).parent / "starter"  # the family that ships with jetsel
PULLED = Path(__file__).parent / "imagenet"  # the shipped files of `jetsel models pull efficientnet-lite`


@dataclass(frozen=True)
class Model:
    """One model on disk. Its manifest describes it and names its other files, which are in the manifest's folder."""

    manifest: Manifest
    manifest_path: Path

    @property
    def directory(self) -> Path:
        """The folder of all files of the model."""
        return self.manifest_path.parent

    @property
    def path(self) -> Path:
        """Path of the weights; call `verify` before opening them."""
        return self.directory / self.manifest.file

    def others(self) -> dict[str, bytes]:
        """Return the content of each file in `Manifest.others`, such as a head's, by name."""
        return {name: (self.directory / name).read_bytes() for name in self.manifest.others}

    def weights(self, classes: int) -> Weights:
        """Return what an engine needs to load the model. classes: number of the family's labels."""
        manifest, spec, head = self.manifest, self.manifest.input, self.manifest.head
        head_file = None if head is None else HeadFile(self.directory / head.file, head.backbone_classes)
        return Weights(manifest.name, self.path, manifest.sha256, spec.height_px, spec.width_px, classes, head_file)


@dataclass(frozen=True)
class Family:
    """Models with the same classes (labels). models: cheapest first, by Manifest.cost_ms."""

    name: str
    labels: Labels
    models: tuple[Model, ...]

    @property
    def by_name(self) -> dict[str, Model]:
        """The models by name, cheapest first."""
        return {model.manifest.name: model for model in self.models}

    @property
    def calibration_folder(self) -> Path:
        """The folder of the calibration that comes with the models: beside them, or in jetsel for pulled models."""
        beside = self.models[0].directory / "calibration"
        recipes = [model.manifest.tensors.recipe for model in self.models if model.manifest.tensors is not None]
        is_pulled = any(recipe.startswith("efficientnet-lite ") for recipe in recipes)
        return beside if beside.is_dir() or not is_pulled else PULLED / "calibration"

    @property
    def decode_px(self) -> int:
        """The shorter side in pixels that decoded images must keep, for the model with the largest input."""
        return max(model.manifest.input.shorter_px for model in self.models)


@dataclass(frozen=True)
class Broken:
    """A manifest or folder that cannot be used. reason: for people, without the path."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Zoo:
    """All families on this device, by name. broken: manifests and folders that cannot be used."""

    families: dict[str, Family]
    broken: tuple[Broken, ...]

    def models(self, family: str) -> dict[str, Model]:
        """Return the models of a family by name, cheapest first; an empty dict if there is no such family."""
        return self.families[family].by_name if family in self.families else {}

    def find(self, name: str, family: str | None) -> tuple[Family, Model]:
        """Return the only model of this name, with its family; raises UnknownModelError if there is none or several.

        family: name of the family to search, None to search all.
        """
        by_name = {owner: self.models(owner) for owner in self.families if family in (None, owner)}
        owners = [(self.families[owner], models[name]) for owner, models in by_name.items() if name in models]
        if not owners:
            scope = "" if family is None else f" in family {family}"
            suggestion = did_you_mean(name, [other for owner in self.families for other in self.models(owner)])
            raise UnknownModelError(f"there is no model {name}{scope}{suggestion}: see jetsel models list")
        if len(owners) > 1:
            family_options = " or ".join(owner.name for owner, _ in owners)
            raise UnknownModelError(f"several families have a model {name}: use --family {family_options}")
        return owners[0]


def scan(directories: Iterable[Path]) -> Zoo:
    """Read the manifests (`*.json`) in these folders, in the given order and then by file name, and return the models.

    A manifest or folder that cannot be used is listed as broken and does not affect the others. If two manifests
    contradict each other (same model name in a family, or different labels), the first counts, so give trusted folders
    first.
    """
    families: dict[str, Family] = {}
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
                family = _family_with_model(path, families)
                families[family.name] = family
            except ManifestError as error:  # noqa: PERF203  # a broken manifest must not hide the others
                broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
    return Zoo(families, tuple(broken))


def verify(model: Model) -> bytes:
    """Return the content of the weights file; raises ManifestError if the hash of one of the model's files is another.

    No weights are in files that this does not check: zoo.onnx_model ensures that when a model is added.
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


def _family_with_model(path: Path, families: Mapping[str, Family]) -> Family:
    """Return the family of the manifest at `path`, with its model added, as in `families`; raises ManifestError."""
    manifest = read_manifest(_file_beside(path, "manifest", path.name))
    labels = Labels.read(_file_beside(path, "labels", manifest.labels))
    for name in manifest.files:
        _file_beside(path, "file", name)
    family = families.get(manifest.family, Family(manifest.family, labels, ()))
    if family.labels.content != labels.content:
        raise ManifestError(
            f"{path}: family: {family.name!r} has other labels in {family.models[0].manifest_path}; models of one "
            "family share their labels file, byte for byte: give this one another family name, or the same labels"
        )
    if (namesake := family.by_name.get(manifest.name)) is not None:
        conflict = f"family {family.name!r} has {manifest.name!r} in {namesake.manifest_path}"
        raise ManifestError(f"{path}: name: {conflict}; choose another name")
    models = sorted((*family.models, Model(manifest, path)), key=lambda one: (one.manifest.cost_ms, one.manifest.name))
    return replace(family, models=tuple(models))


def _file_beside(manifest: Path, key: str, name: str) -> Path:
    """Return the path of the file that `key` of a manifest names; raises ManifestError if missing or a link out."""
    path = manifest.parent / name
    if path.resolve().parent != manifest.parent.resolve():
        raise ManifestError(f"{manifest}: {key}: {name} is a link out of its folder; put the file itself there")
    if not path.is_file():
        raise ManifestError(f"{manifest}: {key}: there is no file {name} beside the manifest; put it there")
    return path


def model_folders(models: Models, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders to scan, most trusted first: the starter family's, [models] paths, the owner's if it exists.

    If `jetsel agent` has installed a fleet's plan, its folders replace the starter family's and the owner's.
    """
    planned = planned_folders(environment)
    if planned:
        return [*planned, *map(Path, models.paths)]
    folders = [*([STARTER] if models.starter else []), *map(Path, models.paths)]
    own_folder = state_folder("models", environment)
    if _exists(own_folder) and own_folder not in folders:
        folders.append(own_folder)
    return folders


def planned_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders NUMBER-FAMILY of the plan that `jetsel agent` installed, sorted; raises ConfigError."""
    current = agent_folder(environment) / "installed" / "current"
    try:
        return sorted(path for path in current.iterdir() if path.is_dir()) if _exists(current) else []
    except FileNotFoundError:
        repair = "remove it, and run `jetsel agent run`, which installs the plan again"
        raise ConfigError(f"{current}: does not point to a folder: {repair}") from None


def _exists(folder: Path) -> bool:
    """Return whether the folder exists; True if this user may not look, so that the scan reports that."""
    try:
        folder.lstat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True
