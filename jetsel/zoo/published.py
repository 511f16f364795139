"""Fetch a classifier's published weights and metadata through torchvision, and export them as an ONNX file."""

from __future__ import annotations

import http.client
import pickle
import re
from pathlib import Path
from typing import Any

from jetsel.base.errors import DownloadError, ManifestError, did_you_mean, pip_install
from jetsel.zoo.adding import ModelDescription
from jetsel.zoo.conventions import CROPPED
from jetsel.zoo.export import export
from jetsel.zoo.labels import Report, labels_from_names
from jetsel.zoo.manifest import Provenance
from jetsel.zoo.pretrained import NAME, PretrainedModel

_HASH_IN_NAME = re.compile(r"-([0-9a-f]{8,})\.[a-z]+\Z")  # mobilenet_v3_small-047dcff4.pth: starts the file's sha256
EXAMPLE = "torchvision:mobilenet_v3_small"
NEEDS_TORCH = f"torch and torchvision are needed to pull: {pip_install('export')}, or pull on another machine"
TOLERANCE = 1e-4  # largest difference between torch and ONNX Runtime, as a share of the largest logit


def pull_from_torchvision(
    reference: str, weights: str, mirror: str | None, folder: Path, report: Report
) -> PretrainedModel:
    """Download the weights of `torchvision:MODEL` into `folder`, export them there, and return torch's answers too.

    weights: name in torchvision's enumeration, or DEFAULT. mirror: URL with the same files, or None. report: shows each
    next step, since steps may take minutes. Raises ManifestError, or DownloadError if another try may succeed.
    """
    collection, _, name = reference.partition(":")
    if collection != "torchvision" or not name:
        suggestion = did_you_mean(reference, [NAME, EXAMPLE])
        raise ManifestError(f"{reference}: cannot be pulled{suggestion}: use {NAME} or torchvision:MODEL, as {EXAMPLE}")
    try:
        import torchvision
    except ImportError as error:
        raise ManifestError(NEEDS_TORCH) from error
    weights_entry = _find_weights(torchvision, name, weights)
    file_name = weights_entry.url.rpartition("/")[2]
    report(f"fetching {file_name}")
    _download_checkpoint(weights_entry.url if mirror is None else f"{mirror.rstrip('/')}/{file_name}", name, folder)
    report("exporting it to ONNX")
    net = torchvision.models.get_model(name, weights=weights_entry, progress=False)  # finds the checkpoint in `folder`
    preset = weights_entry.transforms()
    side_px = preset.crop_size[0]
    onnx_path = folder / f"{name}.onnx"
    example = export(net, onnx_path, side_px, side_px)
    dataset = weights_entry.name.partition("_")[0]
    description = ModelDescription(
        name=name,
        family=None,
        likely_family=dataset.lower(),
        labels=labels_from_names(list(weights_entry.meta["categories"]), reference),
        labels_from=Path(reference),
        spec=preset_values(preset),
        input_px=(side_px, side_px),
        provenance=Provenance(
            source=f"torchvision {torchvision.__version__} {name}, weights {weights_entry.name} ({file_name})",
            notice=f"Published weights, trained on {dataset}: users must find out whether the terms of that data allow "
            "the use.",
        ),
        origin=f"torchvision, trained on {dataset.lower()}",
    )
    return PretrainedModel(onnx_path, description, example, TOLERANCE)


def _find_weights(torchvision: Any, name: str, weights: str) -> Any:
    """Return the torchvision entry for a model's weights (url, meta, transforms); raises ManifestError if unknown."""
    classifiers = torchvision.models.list_models(module=torchvision.models)
    if name not in classifiers:
        suggestion = did_you_mean(name, classifiers)
        raise ManifestError(f"torchvision has no classifier {name}{suggestion}; it has {', '.join(classifiers)}")
    all_weights = torchvision.models.get_model_weights(name)
    if weights not in all_weights.__members__:
        raise ManifestError(f"{name} has no weights {weights}; it has {', '.join(all_weights.__members__)}")
    return all_weights[weights]


def _download_checkpoint(url: str, model_name: str, folder: Path) -> None:
    """Download a checkpoint to where torch looks for it, and verify its hash and that it holds only tensors.

    torchvision's own loader runs any code in a checkpoint, and the hash in the name is too short to exclude a forgery.
    """
    import torch

    path = folder / "checkpoints" / url.rpartition("/")[2]
    hash_match = _HASH_IN_NAME.search(path.name)
    if hash_match is None:
        raise ManifestError(f"{path.name}: its name holds no hash, so it cannot be verified: pull another model")
    path.parent.mkdir()
    torch.hub.set_dir(str(folder))
    try:
        torch.hub.download_url_to_file(url, str(path), hash_match[1], progress=False)
        torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, KeyError, EOFError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ManifestError(f"{path.name}: holds no weights of {model_name}: {reason}; name another mirror") from error
    except (OSError, http.client.HTTPException, RuntimeError, ValueError) as error:
        raise DownloadError(f"{url}: {error}; try again, or name another mirror with --from URL") from error


def preset_values(preset: Any) -> dict[str, Any]:
    """Return torchvision's evaluation preset (resize the shorter side, crop, normalise) as values of InputSpec."""
    method = preset.interpolation.value
    return {
        **CROPPED,
        "resize_px": preset.resize_size[0],
        "interpolation": f"antialiased-{method}" if preset.antialias else method,
        "mean": tuple(preset.mean),
        "std": tuple(preset.std),
    }
