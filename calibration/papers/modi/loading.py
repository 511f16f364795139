"""MODI's Figure 3 (section 4.2): a request's time as the photograph's loading, the model's loading and the run."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise, product
from pathlib import Path

from calibration.papers.modi.files import EIGHT, RAW, File
from calibration.papers.tables import table
from calibration.starter.calibrate import LIMITS
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import decode, model_input, read_file
from jetsel.zoo import STARTER

LATER = 10
CONDITIONS = ((1, True), (1, False), (2, True), (2, False))  # threads, is_cold; the first is what others stand beside
REQUESTS = (10, 100, 1000)
PARTS = ("load_ms", "first_ms", "later_ms")
LARGE_BYTES = 4e6


@dataclass(frozen=True)
class Asked:
    """A first request, in a process that has loaded nothing yet. is_cold: its files are taken out of the page cache."""

    file: File
    photograph: Path
    threads: int
    is_cold: bool


@dataclass(frozen=True)
class Took:
    """Where its time went, in ms, and how long a later request takes, whose photograph is warm.

    runtime_ms: ONNX Runtime's own start, which came before and counts for no model.
    """

    photograph_ms: float
    load_ms: float
    run_ms: float
    later_photograph_ms: float
    later_run_ms: float
    runtime_ms: float

    @property
    def first_ms(self) -> float:
        """The whole of the first request."""
        return self.photograph_ms + self.load_ms + self.run_ms

    @property
    def later_ms(self) -> float:
        """The whole of any later one."""
        return self.later_photograph_ms + self.later_run_ms

    def amortised_ms(self, requests: int) -> float:
        """Return the mean time of so many requests, of which the first loads the model."""
        return (self.first_ms + (requests - 1) * self.later_ms) / requests


def ask(asked: Asked) -> Took:
    """Ask once from nothing, and some more times. Raises OSError where the file stays in the page cache."""
    file = asked.file
    for path in (file.path, asked.photograph):
        _drop(path) if asked.is_cold else path.read_bytes()
    ends = [time.perf_counter()]
    OnnxEngine("start", STARTER / "xs.onnx", concurrency=1, threads=asked.threads)
    ends.append(time.perf_counter())
    fetched = _fetched_bytes()
    shown = model_input(decode(read_file(asked.photograph, LIMITS), LIMITS, file.decode_px), file.spec)
    ends.append(time.perf_counter())
    engine = OnnxEngine(file.model, file.path, concurrency=1, threads=asked.threads)
    ends.append(time.perf_counter())
    engine.infer(shown)
    ends.append(time.perf_counter())
    if asked.is_cold and _fetched_bytes() - fetched < file.size_bytes:
        raise OSError(f"{file.path} stayed in the page cache: name a folder on a disk (--work)")
    later: list[tuple[float, float]] = []
    for _ in range(LATER):
        began = time.perf_counter()
        shown = model_input(decode(read_file(asked.photograph, LIMITS), LIMITS, file.decode_px), file.spec)
        middle = time.perf_counter()
        engine.infer(shown)
        later.append((middle - began, time.perf_counter() - middle))
    runtime, photograph, load, run = (1e3 * (after - before) for before, after in pairwise(ends))
    later_photograph, later_run = (1e3 * statistics.median(part) for part in zip(*later, strict=True))
    return Took(photograph, load, run, later_photograph, later_run, runtime)


Key = tuple[File, int, bool]
"""File, threads, is_cold."""


def measured(
    files: Sequence[File], shown: Sequence[Path], conditions: Sequence[tuple[int, bool]], rounds: int
) -> dict[Key, Took]:
    """Return the median of each part by file and condition (threads, is_cold); all by turns, each in its own process.

    Raises OSError as `ask` does.
    """
    asked = [
        Asked(file, shown[turn % len(shown)], threads, is_cold)
        for turn, (threads, is_cold), file in product(range(rounds), conditions, files)
    ]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imports are no part of a request
    found: dict[Key, list[Took]] = {}
    with context.Pool(1, maxtasksperchild=1) as pool:
        for one, took in zip(asked, pool.imap(ask, asked), strict=True):
            found.setdefault((one.file, one.threads, one.is_cold), []).append(took)
    return {key: Took(*map(statistics.median, zip(*map(astuple, took), strict=True))) for key, took in found.items()}


def figure_3(found: Mapping[Key, Took]) -> list[str]:
    """Return two tables: one thread and a cold file, by model, as it ships; 8 bits; and the others beside it."""
    base = {file: took for (file, threads, is_cold), took in found.items() if (threads, is_cold) == CONDITIONS[0]}
    shown: dict[str, list[list[str]]] = {}
    for file, took in base.items():
        shown.setdefault(file.model, []).append(_cells(file, took))
    rows = [
        f"{model} | {' | '.join('; '.join(cells) for cells in zip(*ways, strict=True))}"
        for model, ways in shown.items()
    ]
    columns = "model | MB | photograph ms | load ms | first run ms | first request ms | load %"
    columns += "".join(f" | mean of {requests}" for requests in REQUESTS)
    others = [
        f"{threads}, {'cold' if is_cold else 'warm'} | "
        + " | ".join(_beside(found, base, threads, is_cold, part) for part in PARTS)
        for threads, is_cold in CONDITIONS[1:]
    ]
    eights = [
        f"{threads}, {'cold' if is_cold else 'warm'} | "
        + " | ".join(beside_large(found, threads, is_cold, part) for part in (*PARTS, "later_run_ms"))
        for threads, is_cold in CONDITIONS
    ]
    start = statistics.median(took.runtime_ms for took in found.values())
    return [
        table("Figure 3: one thread, files that are not in memory; as they ship; 8 bits", columns, rows),
        table("Beside that: median over the files (least to most)", f"threads, file | {' | '.join(PARTS)}", others),
        table(
            f"8 bits beside that, files of {LARGE_BYTES / 1e6:g} MB and more: median over the models (least to most)",
            f"threads, file | {' | '.join(PARTS)} | later_run_ms",
            eights,
        ),
        f"ONNX Runtime's own start, once a process and in none of these: {start:.1f} ms\n",
    ]


def _cells(file: File, took: Took) -> list[str]:
    parts = took.photograph_ms, took.load_ms, took.run_ms, took.first_ms
    means = [f"{took.amortised_ms(requests):.2f}" for requests in REQUESTS]
    share = f"{100 * took.load_ms / took.first_ms:.0f}"
    return [f"{file.size_bytes / 1e6:.2f}", *(f"{part:.1f}" for part in parts), share, *means]


def _beside(found: Mapping[Key, Took], base: Mapping[File, Took], threads: int, is_cold: bool, part: str) -> str:
    ratios = [getattr(found[file, threads, is_cold], part) / getattr(took, part) for file, took in base.items()]
    return _median(ratios)


def beside_large(found: Mapping[Key, Took], threads: int, is_cold: bool, part: str) -> str:
    """Return what 8 bits take beside the large file that ships."""
    took = {(key[0].model, key[0].way): (key[0], one) for key, one in found.items() if key[1:] == (threads, is_cold)}
    ratios = [
        getattr(took[model, EIGHT][1], part) / getattr(one, part)
        for (model, way), (file, one) in took.items()
        if way == RAW and file.size_bytes >= LARGE_BYTES
    ]
    return _median(ratios)


def _median(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _drop(path: Path) -> None:
    """Take a file's pages out of the cache; whoever owns it may (posix_fadvise(2))."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)  # pages that are not written yet would stay
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(opened)


def _fetched_bytes() -> int:
    """Return what this process had fetched from the disk (proc(5), /proc/pid/io, read_bytes)."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])
