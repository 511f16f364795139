"""Measure the family as it is published: `python -m calibration.starter.measure`; prints a table for the README."""

from __future__ import annotations

import argparse
import json
import platform
import tarfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from jetsel.engines import Engine
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import InputSpec, Limits, decode, model_input
from jetsel.zoo import STARTER, Family, Model, scan, verify

TRAINED = Path(__file__).parent / "trained"
HELD_OUT_PER_CLASS = 20  # as data.py has it, which needs torch; a test compares the photographs
LIMITS = Limits(max_bytes=1 << 24, max_pixels=50_000_000)
BATCH = 50  # of the accuracy; latency is that of one photograph
WARM_UP_RUNS = 20
RUNS_PER_ROUND = 10  # of one model before the next one's turn
IDLE = 0.97  # of a processor: with less, runs longer than the scheduler's slice were interrupted and shorter ones not


@dataclass(frozen=True)
class Photographs:
    """Encoded photographs and their classes (n,) int64: the index of the folder's name in the labels."""

    encoded: list[bytes]
    classes: NDArray[np.int64]


def read_photographs(tar: Path, wnids: Sequence[str], last_per_class: int | None = None) -> Photographs:
    """Read `<wnid>/<file>` from the archive, in sorted order; of each class the last `last_per_class`, or all."""
    index = {wnid: i for i, wnid in enumerate(wnids)}
    encoded: list[bytes] = []
    classes: list[int] = []
    with tarfile.open(tar) as archive:
        by_class: dict[str, list[tarfile.TarInfo]] = defaultdict(list)
        for member in sorted((m for m in archive.getmembers() if m.isfile()), key=lambda m: m.name):
            by_class[Path(member.name).parent.name].append(member)
        for wnid, members in by_class.items():
            for member in members[-last_per_class:] if last_per_class else members:
                handle = archive.extractfile(member)
                assert handle is not None  # it is a file
                encoded.append(handle.read())
                classes.append(index[wnid])
    return Photographs(encoded, np.array(classes))


def inputs_of(photographs: Photographs, spec: InputSpec, decode_px: int) -> NDArray[np.float32]:
    """Return (n, 3, height, width) float32, each photograph decoded and resized as the daemon does it."""
    return np.concatenate([model_input(decode(data, LIMITS, decode_px), spec) for data in photographs.encoded])


def probabilities_of(engine: Engine, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, classes) float32: the softmax of the model's logits."""
    logits = np.concatenate([engine.infer(inputs[i : i + BATCH]).logits for i in range(0, len(inputs), BATCH)])
    powers = np.exp(logits - logits.max(1, keepdims=True))
    found: NDArray[np.float32] = powers / powers.sum(1, keepdims=True)
    return found


def latencies_ms(engines: Sequence[Engine], inputs: Sequence[NDArray[np.float32]], rounds: int) -> NDArray[np.float64]:
    """Return (models, rounds, runs) ms of single photographs; models take turns, so that all see the same machine."""
    found = np.empty((len(engines), rounds, RUNS_PER_ROUND))
    for engine, batch in zip(engines, inputs, strict=True):
        for _ in range(WARM_UP_RUNS):
            engine.infer(batch[:1])
    for turn in range(rounds):
        for model, (engine, batch) in enumerate(zip(engines, inputs, strict=True)):
            for run in range(RUNS_PER_ROUND):
                photograph = (turn * RUNS_PER_ROUND + run) % len(batch)
                began = time.perf_counter()
                engine.infer(batch[photograph : photograph + 1])
                found[model, turn, run] = (time.perf_counter() - began) * 1e3
    return found


def top(probabilities: NDArray[np.float32], classes: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Return (n,) bool: whether the right class is among the k most probable."""
    right = probabilities[np.arange(len(classes)), classes]
    found: NDArray[np.bool_] = (probabilities > right[:, np.newaxis]).sum(1) < k
    return found


def training_minutes(trained: Path, model: Model) -> str:
    """How long the model trained, from the record its export wrote; a dash where there is none for these weights."""
    record = trained / f"{model.manifest.name}.json"
    if not record.exists():
        return "–"
    told = json.loads(record.read_text(encoding="utf-8"))
    return f"{told['seconds'] / 60:.0f}" if told["sha256"] == model.manifest.sha256 else "–"


def rows(
    family: Family,
    seen: Sequence[NDArray[np.float32]],
    classes: NDArray[np.int64],
    times_ms: NDArray[np.float64],
    trained: Path,
) -> list[list[str]]:
    """One row of the table for each model; `seen` its probabilities, `times_ms` as `latencies_ms` returns them."""
    medians = np.median(times_ms, axis=2)  # by model and round: ratios are taken within a round
    found = []
    for i, model in enumerate(family.models):
        ratio = f"{np.median(medians[i] / medians[i - 1]):.2f}" if i else "–"
        found.append(
            [
                model.manifest.name,
                f"{100 * top(seen[i], classes, 1).mean():.1f}",
                f"{100 * top(seen[i], classes, 5).mean():.1f}",
                f"{model.manifest.multiply_accumulates / 1e6:.1f}",
                f"{model.manifest.parameters / 1e6:.2f}",
                f"{model.path.stat().st_size / 1e6:.2f}",
                f"{np.percentile(times_ms[i], 50):.3f}",
                f"{np.percentile(times_ms[i], 95):.3f}",
                ratio,
                training_minutes(trained, model),
            ]
        )
    return found


HEAD = [
    "model",
    "top-1 %",
    "top-5 %",
    "multiply-accumulates, million",
    "parameters, million",
    "file, MB",
    "p50 ms",
    "p95 ms",
    "times the one before",
    "training, min",
]


def report(family: Family, photographs: Photographs, what: str, rounds: int, trained: Path) -> str:
    """Measure every model of the family on the photographs and return the table and what the models reach together."""
    specs = [model.manifest.input for model in family.models]
    made = {spec: inputs_of(photographs, spec, family.decode_px) for spec in set(specs)}
    inputs = [made[spec] for spec in specs]
    engines = []
    for model in family.models:
        verify(model)
        engines.append(OnnxEngine(model.manifest.name, model.path, concurrency=1, threads=1))
    seen = [probabilities_of(engine, batch) for engine, batch in zip(engines, inputs, strict=True)]
    wall, busy = time.perf_counter(), time.thread_time()
    times_ms = latencies_ms(engines, inputs, rounds)
    share = (time.thread_time() - busy) / (time.perf_counter() - wall)
    right = np.array([top(probabilities, photographs.classes, 1) for probabilities in seen])
    lines = [HEAD, ["---"] * len(HEAD), *rows(family, seen, photographs.classes, times_ms, trained)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = [
        f"Family {family.name}, {len(photographs.encoded)} images ({what}). "
        f"ONNX Runtime {onnxruntime.__version__}, one thread, one photograph at a time, "
        f"{times_ms[0].size} runs of each model by turns, "
        f"on {platform.machine()} with Python {platform.python_version()}. They had {100 * share:.0f} % of a processor"
        + ("." if share > IDLE else ", so long runs look longer than they are: measure again on an idle machine."),
        f"At least one model is right (oracle): {100 * right.any(0).mean():.1f} % top-1.",
    ]
    if len(seen) > 1:
        both = top(np.mean(seen[-2:], axis=0, dtype=np.float32), photographs.classes, 1).mean()
        names = f"{family.models[-2].manifest.name} and {family.models[-1].manifest.name}"
        notes.append(f"Averaged probabilities of {names}: {100 * both:.1f} % top-1.")
    return "\n\n".join([table, *notes])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of the family in `--models`."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--photos-tar", type=Path, help="an archive of <wnid>/<file>.JPEG")
    which.add_argument(
        "--held-out", action="store_true", help="the training photographs kept out of training: to tune on"
    )
    parser.add_argument("--data", type=Path, help="folder with tiny100-train.tar, for --held-out")
    parser.add_argument(
        "--models", type=Path, default=STARTER, help="folder of manifests (default: the starter family)"
    )
    parser.add_argument("--trained", type=Path, default=TRAINED, help="records of the trainings (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each model (default: %(default)s)")
    options = parser.parse_args(arguments)
    zoo = scan([options.models])
    if zoo.broken:
        raise SystemExit("\n".join(broken.reason for broken in zoo.broken))
    if len(zoo.families) != 1:
        raise SystemExit(f"{options.models} holds {len(zoo.families)} families and one is measured at a time")
    (family,) = zoo.families.values()
    if options.held_out:
        if options.data is None:
            parser.error("--held-out needs --data, the folder with tiny100-train.tar")
        tar, last, what = options.data / "tiny100-train.tar", HELD_OUT_PER_CLASS, "held out of training"
    else:
        tar, last, what = options.photos_tar, None, options.photos_tar.name
    photographs = read_photographs(tar, family.labels.wnids, last)
    print(report(family, photographs, what, options.rounds, options.trained))


if __name__ == "__main__":
    main()
