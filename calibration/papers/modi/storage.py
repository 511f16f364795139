"""How many models fit into a storage budget, by the way that they are stored (MODI, section 3.2.1)."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import chain, combinations

from calibration.papers.modi.files import EIGHT, RAW, ROUNDED, File
from calibration.papers.tables import table

FORMS: tuple[tuple[str, bool], ...] = ((RAW, False), (RAW, True), (ROUNDED, True), (EIGHT, False), (EIGHT, True))
BUDGETS_MB = (0.5, 1, 2, 5, 10, 20, 30, 50, 100)
UNPACKED = 9


def fitting(files: Sequence[File], budget_bytes: float, size: Callable[[File], int]) -> tuple[int, float | None]:
    """Return the most models that fit together, and the best share of right answers of one that fits, None of none.

    Models that share a file are stored once.
    """
    sizes = {file.path: size(file) for file in files}
    together = chain.from_iterable(combinations(sizes, count) for count in range(len(sizes) + 1))
    fit = [paths for paths in together if sum(sizes[path] for path in paths) <= budget_bytes]
    most = max(sum(file.path in paths for file in files) for paths in fit)
    return most, max((file.right for file in files if sizes[file.path] <= budget_bytes), default=None)


def budgets(families: Sequence[Sequence[File]]) -> str:
    """Return a table by family, budget and form; a budget that changes nothing is left out."""
    rows = []
    for files in families:
        said = ""
        for budget_mb in BUDGETS_MB:
            cells = " | ".join(_cell(files, way, is_gzipped, budget_mb) for way, is_gzipped in FORMS)
            if cells != said:
                rows.append(f"{files[0].family}, {budget_mb:g} | {cells}")
            said = cells
    names = " | ".join(way + (", gzipped" if is_gzipped else "") for way, is_gzipped in FORMS)
    return table("Models that fit, and top-1 % of the best that does", f"MB | {names}", rows)


def unpacking(files: Sequence[File]) -> str:
    """Return a table: what gzip saves of each file and what taking it apart costs before each load."""
    rows = []
    for file in files:
        packed = gzip.compress(file.path.read_bytes())
        saved = 100 * (1 - file.gzipped_bytes / file.size_bytes)
        sizes = f"{file.size_bytes / 1e6:.2f} | {file.gzipped_bytes / 1e6:.2f} | {saved:.1f}"
        rows.append(f"{file.model} | {file.way} | {sizes} | {_unpack_ms(packed):.1f} | {100 * file.right:.1f}")
    return table("Files", "model | file | MB | MB gzipped | saved % | unpacking ms | top-1 %", rows)


def _cell(files: Sequence[File], way: str, is_gzipped: bool, budget_mb: float) -> str:
    stored = [file for file in files if file.way == way]
    most, best = fitting(stored, budget_mb * 1e6, lambda file: file.gzipped_bytes if is_gzipped else file.size_bytes)
    return "0" if best is None else f"{most}, {100 * best:.1f}"


def _unpack_ms(packed: bytes) -> float:
    taken = []
    for _ in range(UNPACKED):
        began = time.perf_counter()
        gzip.decompress(packed)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)
