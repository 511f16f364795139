"""Fetch a classifier's published weights and metadata through torchvision, and export them as an ONNX file."""

from __future__ import annotations

import http.client
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jetsel.base.errors import DownloadError, ManifestError, did_you_mean, pip_install
from jetsel.zoo.adding import ModelDescription
from jetsel.zoo.export import export
from jetsel.zoo.labels import labels_of
from jetsel.zoo.manifest import Provenance
from jetsel.zoo.pretrained import NAME, PretrainedModel

_HASHED = re.compile(r"-([0-9a-f]{8,})\.[a-z]+\Z")  # mobilenet_v3_small-047dcff4.pth: starts the file's sha256
EXAMPLE = "torchvision:mobilenet_v3_small"
NEEDS_TORCH = f"torch and torchvision are needed to pull: {pip_install('export')}, or pull on another machine"
TOLERANCE = 1e-4  # largest difference between torch and ONNX Runtime, as a share of the largest logit


def published(
    reference: str, weights: str, mirror: str | None, folder: Path, tell: Callable[[str], None]
) -> PretrainedModel:
    """Download the weights of `torchvision:MODEL` into `folder`, and export them there.

    weights: a name of torchvision's enumeration, or DEFAULT. mirror: a URL with the same files. tell: receives each
    next step, since steps may take minutes. Raises ManifestError or DownloadError.
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
    net = _built(torchvision, name, chosen, checkpoint)
    preset = chosen.transforms()
    side_px = preset.crop_size[0]
    onnx = folder / f"{name}.onnx"
    example = export(net, onnx, side_px, side_px)
    data = chosen.name.partition("_")[0]
    description = ModelDescription(
        name=name,
        family=None,
        likely_family=data.lower(),
        labels=labels_of(list(chosen.meta["categories"]), reference),
        labels_from=Path(reference),
        spec=spec_of(preset),
        input_px=(side_px, side_px),
        provenance=Provenance(
            source=f"torchvision {torchvision.__version__} {name}, weights {chosen.name} ({checkpoint.name})",
            notice=f"Published weights, trained on {data}: users must find out whether the terms of that data allow "
            "the use.",
        ),
        origin=f"torchvision, trained on {data.lower()}",
    )
    return PretrainedModel(onnx, description, example, TOLERANCE)


def import_torchvision() -> Any:
    """Import torchvision; raises ManifestError if it, or torch, is not installed."""
    try:
        import torch  # noqa: F401  # torchvision needs torch
        import torchvision
    except ImportError as error:
        raise ManifestError(NEEDS_TORCH) from error
    return torchvision


def _chosen(torchvision: Any, name: str, weights: str) -> Any:
    """Return the member of the model's enumeration of weights; raises ManifestError for unknown names."""
    classifiers = torchvision.models.list_models(module=torchvision.models)
    if name not in classifiers:
        near = did_you_mean(name, classifiers)
        raise ManifestError(f"torchvision has no classifier {name}{near}; it has {', '.join(classifiers)}")
    all_weights = torchvision.models.get_model_weights(name)
    if weights not in all_weights.__members__:
        raise ManifestError(f"{name} has no weights {weights}; it has {', '.join(all_weights.__members__)}")
    return all_weights[weights]


def _fetched(url: str, mirror: str | None, folder: Path) -> Path:
    """Download a checkpoint to the place where torch looks for it, verify its hash, and return its path."""
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
        raise DownloadError(f"{place}: {error}; try again, or name another mirror with --from URL") from error
    return path


def _built(torchvision: Any, name: str, chosen: Any, checkpoint: Path) -> Any:
    """Return torchvision's network with the downloaded weights.

    torchvision's loader runs any code in a checkpoint, and the hash in the name is too short to exclude a forged file.
    So torch's safe loader, which accepts only tensors, reads the checkpoint first.
    """
    import torch

    try:
        torch.load(checkpoint, map_location="cpu", weights_only=True)
        torch.hub.set_dir(str(checkpoint.parent.parent))  # torch finds the checkpoint there
        return torchvision.models.get_model(name, weights=chosen, progress=False)
    except (pickle.UnpicklingError, RuntimeError, KeyError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ManifestError(f"{checkpoint.name}: holds no weights of {name}: {reason}; name another mirror") from error


def spec_of(preset: Any) -> dict[str, Any]:
    """Return torchvision's evaluation preset as values of InputSpec: resize the shorter side, crop, normalise."""
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
