"""Each model's file as it ships, rounded and of 8 bits: made once, with its size and how often it is right."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from calibration.optimizing.material import drawn
from calibration.papers.compression import rounded
from calibration.starter.calibrate import LIMITS
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import InputSpec
from jetsel.train.images import normalised, read_pixels
from jetsel.train.optimize import compress
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.zoo import Family, Model
from jetsel.zoo.onnx_model import read_model

RAW, ROUNDED, EIGHT = "as it ships", "rounded", "8 bits"
WAYS = (RAW, ROUNDED, EIGHT)


class File(msgspec.Struct, frozen=True):
    """One model's file. right: share of the test photographs; spec, decode_px: how a photograph becomes its input."""

    family: str
    model: str
    way: str
    path: Path
    size_bytes: int
    gzipped_bytes: int
    right: float
    spec: InputSpec
    decode_px: int


def photographs(folder: Path) -> list[Path]:
    """Return the photographs below a folder, each in one that is named by its class."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def files(family: Family, fit: Path, test: Path, work: Path) -> list[File]:
    """Return all files of a family, from `work` where they were made before. Models of one content share a path.

    fit: photographs that give the ranges of 8 bits. test: those that judge.
    """
    kept = work / f"{family.name}.json"
    if not kept.exists():
        work.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(
            msgspec.json.encode(list(_made(family, photographs(fit), photographs(test), work)), enc_hook=str)
        )
    return msgspec.json.decode(kept.read_bytes(), type=list[File], dec_hook=lambda kind, text: kind(text))


def _made(family: Family, fit: Sequence[Path], test: Sequence[Path], work: Path) -> Iterator[File]:
    numbers = {wnid: number for number, wnid in enumerate(family.labels.wnids)}
    classes = np.array([numbers[path.parent.name] for path in test])
    ranges = drawn(fit, 1 / 3)[0][: compress.MOST_SHOWN]
    for model in family.models:
        spec = model.manifest.input
        shown, read = read_pixels(test, spec, LIMITS, family.decode_px, lambda *_: None)
        if len(read) != len(test):
            raise SystemExit("a test photograph cannot be read: take it out")
        learn, _ = read_pixels(ranges, spec, LIMITS, family.decode_px, lambda *_: None)
        for way in WAYS:
            content = _content(model, way, learn)
            path = work / f"{hashlib.sha256(content).hexdigest()[:12]}.onnx"
            path.write_bytes(content)
            sizes = len(content), len(gzip.compress(content))
            right = _right(path, shown, spec, classes)
            yield File(family.name, model.manifest.name, way, path, *sizes, right, spec, family.decode_px)


def _content(model: Model, way: str, learn: NDArray[np.uint8]) -> bytes:
    if way == RAW:
        return model.path.read_bytes()
    graph, spec = read_model(model.path), model.manifest.input
    if way == ROUNDED:
        return rounded(graph).SerializeToString()
    sized = with_fixed_size(graph, spec.height_px, spec.width_px)
    return compress.int8(sized, normalised(learn, spec), symmetric=False).SerializeToString()


def _right(path: Path, shown: NDArray[np.uint8], spec: InputSpec, classes: NDArray[np.int64]) -> float:
    engine = OnnxEngine(path.stem, path, concurrency=1, threads=1)
    answers = [engine.infer(normalised(shown[row : row + 1], spec)).logits[0].argmax() for row in range(len(shown))]
    return float((np.array(answers) == classes).mean())
