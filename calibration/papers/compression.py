"""MODI's Figure 2 with our models: sizes, load and run times and accuracy of each way to shrink.

`python -m calibration.papers.compression MODELS FIT TEST` writes results/modi-figure-2.md. MODELS: the folder with
lite0 to lite2. FIT: photographs by which ranges are found, kind/class/photograph. TEST: those that judge.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import ModelProto, numpy_helper

from benchmarks.conditions import conditions
from calibration.optimizing.clustered import clustered
from calibration.optimizing.material import drawn
from calibration.papers.tables import table, written
from calibration.starter.calibrate import LIMITS
from jetsel.train.images import normalised, read_pixels
from jetsel.train.optimize import compress
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.zoo import Family, Model, scan
from jetsel.zoo.onnx_model import inputs_of, read_model

STEPS = 256  # of rounded weights, as TensorFlow's round_weights has them
LOADED, RUN = 9, 30
COLUMNS = "model | way | MB | saved % | MB gzipped | saved % | load ms | of 32 bits' | run ms | of 32 bits' | top-1 %"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("models", "fit", "test"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    rows = figure_2(scan([given.models]).families["imagenet"], ("lite0-224", "lite2-260"), given.fit, given.test)
    written("modi-figure-2", "\n".join([table("MODI, Figure 2", COLUMNS, rows), *conditions(), ""]))


def figure_2(family: Family, names: Sequence[str], fit: Path, test: Path) -> list[str]:
    """Return a row for each model and way: sizes in MB, what they save of the first, ms, and top-1 %.

    fit, test: folders of photographs, a folder for each class below a folder for each kind; ranges come of `fit`.
    """
    numbers = {wnid: number for number, wnid in enumerate(family.labels.wnids)}
    shown = sorted(path for path in test.glob("*/*/*") if path.is_file())
    truth = np.array([numbers[path.parent.name] for path in shown])
    ranges, _ = drawn(sorted(path for path in fit.glob("*/*/*") if path.is_file()), 1 / 3)
    return [
        row
        for model in family.models
        if model.manifest.name in names
        for row in _rows(family, model, ranges[: compress.MOST_SHOWN], shown, truth)
    ]


def rounded(model: ModelProto) -> ModelProto:
    """Put each large tensor's weights on 256 even steps between its ends; they stay numbers of as many bits."""
    made = ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        kept = numpy_helper.to_array(tensor)
        if kept.dtype in (np.float32, np.float16) and kept.size >= STEPS:
            weights = kept.astype(np.float32)
            step = (weights.max() - weights.min()) / (STEPS - 1)
            even = np.rint((weights - weights.min()) / step) * step + weights.min()
            tensor.CopyFrom(numpy_helper.from_array(even.astype(kept.dtype), tensor.name))
    return made


def _rows(family: Family, model: Model, ranges: Sequence[Path], shown: Sequence[Path], truth: np.ndarray) -> list[str]:
    spec = model.manifest.input
    plain = with_fixed_size(read_model(model.path), spec.height_px, spec.width_px)

    def levels(paths: Sequence[Path]) -> np.ndarray:
        return read_pixels(paths, spec, LIMITS, family.decode_px, lambda *_: None)[0]

    kept = levels(shown)
    if len(kept) != len(truth):
        raise SystemExit("a photograph cannot be read: take it out")
    ways = {
        "float32": plain,
        "rounded": rounded(plain),
        "256 clusters, 8-bit indices": clustered(plain),
        "8 bits": compress.int8(plain, normalised(levels(ranges), spec), symmetric=False),
    }
    files = {way: made.SerializeToString() for way, made in ways.items()}
    before, name, rows = len(files["float32"]), inputs_of(plain)[0].name, []
    sessions = {way: _loaded(content) for way, content in files.items()}
    load_ms = _by_turns({way: partial(_loaded, content) for way, content in files.items()}, LOADED)
    first = {name: normalised(kept[:1], spec)}
    run_ms = _by_turns({way: partial(one.run, ["logits"], first) for way, one in sessions.items()}, RUN)
    for way, content in files.items():
        small = len(gzip.compress(content))
        answers = [
            sessions[way].run(["logits"], {name: normalised(kept[row : row + 1], spec)})[0].argmax()
            for row in range(len(kept))
        ]
        saved = f"{100 * (1 - len(content) / before):.1f} | {small / 1e6:.2f} | {100 * (1 - small / before):.1f}"
        right = 100 * float((np.array(answers) == truth).mean())
        times = " | ".join(f"{ms[way]:.1f} | {ms[way] / ms['float32']:.2f}" for ms in (load_ms, run_ms))
        rows.append(f"{model.manifest.name} | {way} | {len(content) / 1e6:.2f} | {saved} | {times} | {right:.1f}")
    return rows


def _loaded(content: bytes) -> onnxruntime.InferenceSession:
    """Return a session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _by_turns(steps: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median ms of each step; they run by turns, so that other work disturbs all of them alike."""
    taken: dict[str, list[float]] = {way: [] for way in steps}
    for _ in range(rounds):
        for way, step in steps.items():
            began = time.perf_counter()
            step()
            taken[way].append((time.perf_counter() - began) * 1e3)
    return {way: statistics.median(times) for way, times in taken.items()}


if __name__ == "__main__":
    main()
