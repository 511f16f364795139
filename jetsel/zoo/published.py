"""Fetch a classifier's published weights through torchvision, with all that was said of them, as an ONNX file."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jetsel.base.errors import DownloadError, ManifestError, did_you_mean, pip_install
from jetsel.zoo.export import Example, export
from jetsel.zoo.pretrained import NAME

_HASHED = re.compile(r"-([0-9a-f]{8,})\.[a-z]+\Z")  # mobilenet_v3_small-047dcff4.pth: of the file's sha256
EXAMPLE = "torchvision:mobilenet_v3_small"
NEEDS_TORCH = f"torch and torchvision are needed to pull: {pip_install('export')}, or pull on another machine"


@dataclass(frozen=True)
class Published:
    """A model as it was exported. spec: of InputSpec, less the size, which is `input_px`, width and height.

    trained_on: the data set, as a name for the family. example: what torch answers, to compare with.
    """

    onnx: Path
    name: str
    trained_on: str
    classes: list[str]
    input_px: tuple[int, int]
    spec: dict[str, Any]
    source: str
    notice: str
    example: Example


def published(reference: str, weights: str, mirror: str | None, folder: Path, tell: Callable[[str], None]) -> Published:
    """Download the weights of `torchvision:MODEL` into `folder` and export them there.

    weights: the name of one of the model's published weights, or DEFAULT. mirror: a URL under which the same files lie.
    tell: called with what is done next, since it may take minutes.
    Raises ManifestError that names the repair.
    """
    kind, _, name = reference.partition(":")
    if kind != "torchvision" or not name:
        near = did_you_mean(reference, [NAME, EXAMPLE])
        raise ManifestError(
            f"{reference}: nothing of this name can be pulled{near}: use {NAME}, or torchvision:MODEL as in {EXAMPLE}"
        )
    torchvision = import_torchvision()
    chosen = _chosen(torchvision, name, weights)
    tell(f"fetching {chosen.url.rpartition('/')[2]}")
    checkpoint = _fetched(chosen.url, mirror, folder)
    tell("exporting it to ONNX")
    net = _built(torchvision, name, chosen, folder)
    preset = chosen.transforms()
    side_px = preset.crop_size[0]
    onnx = folder / f"{name}.onnx"
    example = export(net, onnx, side_px, side_px)
    return Published(
        onnx=onnx,
        name=name,
        trained_on=chosen.name.partition("_")[0].lower(),
        classes=list(chosen.meta["categories"]),
        input_px=(side_px, side_px),
        spec=spec_of(preset),
        source=f"torchvision {torchvision.__version__} {name}, weights {chosen.name} ({checkpoint.name})",
        notice=f"Published weights, trained on {chosen.name.partition('_')[0]}: users must find out whether the terms "
        "of that data allow the use.",
        example=example,
    )


def import_torchvision() -> Any:
    """Import torchvision; raises ManifestError if it, or torch, is not installed."""
    try:
        import torch  # noqa: F401  # which torchvision cannot do without
        import torchvision
    except ImportError as error:
        raise ManifestError(NEEDS_TORCH) from error
    return torchvision


def _chosen(torchvision: Any, name: str, weights: str) -> Any:
    """Return the member of the model's enumeration of weights."""
    classifiers = torchvision.models.list_models(module=torchvision.models)
    if name not in classifiers:
        near = did_you_mean(name, classifiers)
        raise ManifestError(f"torchvision has no classifier {name}{near}; it has {', '.join(classifiers)}")
    all_weights = torchvision.models.get_model_weights(name)
    if weights not in all_weights.__members__:
        raise ManifestError(f"{name} has no weights {weights}; it has {', '.join(all_weights.__members__)}")
    return all_weights[weights]


def _fetched(url: str, mirror: str | None, folder: Path) -> Path:
    """Download a checkpoint to where torch looks for it; its hash shows that it is the one published."""
    import torch

    file = url.rpartition("/")[2]
    hashed = _HASHED.search(file)
    if hashed is None:
        raise ManifestError(f"{file}: its name holds no hash, so it cannot be verified: pull another model")
    path = folder / "checkpoints" / file
    path.parent.mkdir()
    place = url if mirror is None else f"{mirror.rstrip('/')}/{file}"
    try:
        torch.hub.download_url_to_file(place, str(path), hashed[1], progress=False)
    except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
        reason = f"{place}: {error}; try again, or name another mirror with --from URL"
        raise DownloadError(reason) from error
    return path


def _built(torchvision: Any, name: str, chosen: Any, folder: Path) -> Any:
    """Return the network with the weights that were fetched, as torchvision itself puts them together.

    Its loader would run whatever code a checkpoint holds: the hash in the name is too short to rule another file out,
    so that torch's careful loader reads it first, which knows tensors alone.
    """
    import pickle

    import torch

    path = folder / "checkpoints" / chosen.url.rpartition("/")[2]
    try:
        torch.load(path, map_location="cpu", weights_only=True)
        torch.hub.set_dir(str(folder))  # where torch then finds what it would download
        return torchvision.models.get_model(name, weights=chosen, progress=False)
    except (pickle.UnpicklingError, RuntimeError, KeyError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ManifestError(f"{path.name}: holds no weights of {name}: {reason}; name another mirror") from error


def spec_of(preset: Any) -> dict[str, Any]:
    """Say torchvision's preset for evaluation as an InputSpec: resize the shorter side, crop, normalise."""
    kind = preset.interpolation.value
    return {
        "resize": "shorter-side",
        "resize_px": preset.resize_size[0],
        "interpolation": f"antialiased-{kind}" if preset.antialias else kind,
        "crop": "center",
        "channels": "rgb",
        "mean": tuple(preset.mean),
        "std": tuple(preset.std),
    }
