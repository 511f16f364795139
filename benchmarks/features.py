"""How long the features of a photograph take: all, the paper's seven, each alone. `python benchmarks/features.py`."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from jetsel.features import NAMES, PAPER_SEVEN, View, extract

SIDE_PX = 224
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png"}


def drawn_photographs(count: int, seed: int = 0) -> list[NDArray[np.uint8]]:
    """Return (224, 224, 3) uint8 images with what a photograph has: a smooth ground, texture, things on it, noise."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        image = np.zeros((SIDE_PX, SIDE_PX, 3), np.float32)
        for cells, strength in ((3, 90), (12, 40), (50, 25)):
            ground = rng.normal(0, strength, (cells, cells, 3)).astype(np.float32)
            image += cv2.resize(ground, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC)
        image += 120
        for _ in range(rng.integers(2, 9)):
            centre, axes = rng.integers(0, SIDE_PX, 2).tolist(), rng.integers(5, 70, 2).tolist()
            colour = rng.integers(0, 256, 3).tolist()
            cv2.ellipse(image, centre, axes, float(rng.integers(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
        image += rng.normal(0, 6, image.shape)
        images.append(np.clip(image, 0, 255).astype(np.uint8))
    return images


def real_photographs(folder: Path) -> list[NDArray[np.uint8]]:
    """Return the photographs below folder, resized to (224, 224, 3) uint8; what is not an image is left out."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    images = (cv2.imread(str(path)) for path in paths)
    return [
        np.asarray(cv2.resize(image, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA), np.uint8)
        for image in images
        if image is not None
    ]


def timed_ms(images: Iterable[NDArray[np.uint8]], names: Sequence[str]) -> list[float]:
    """Return the time of one extraction from each image, in milliseconds."""
    times = []
    for image in images:
        start = time.perf_counter()
        extract(image, names)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def shrinking_ms(images: Iterable[NDArray[np.uint8]]) -> list[float]:
    """Return the time that bringing each image to the working resolution takes alone, in milliseconds."""
    times = []
    for image in images:
        start = time.perf_counter()
        _ = View(image).small
        times.append((time.perf_counter() - start) * 1e3)
    return times


def processor() -> str:
    """Return the processor's name, or the architecture's where the system does not tell."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[0] if names else platform.machine()


def main() -> None:
    """Print one table, in milliseconds, and the conditions.

    Median and 95th percentile are over all extractions. The last column is the median over the photographs of each
    one's quickest round: what it costs while nothing else wants the core.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, help="a folder of photographs to use instead of drawn ones")
    parser.add_argument("--rounds", type=int, default=20, help="how often each photograph is taken (default: 20)")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    images = real_photographs(args.photos) if args.photos else drawn_photographs(60)
    if not images:
        parser.error(f"no photographs (JPEG or PNG) below {args.photos}: name a folder that has some")
    rows: dict[str, Sequence[str] | None] = {f"all {len(NAMES)}": NAMES, "the paper's seven": PAPER_SEVEN}
    rows |= {"shrinking alone": None} | {name: (name,) for name in NAMES}
    times_ms: dict[str, list[float]] = {row: [] for row in rows}
    for _ in range(args.rounds + 1):  # rows take turns, so that a busy moment of the machine hits all alike
        for row, names in rows.items():
            times_ms[row].extend(shrinking_ms(images) if names is None else timed_ms(images, names))
    table = Table("feature", "median ms", "p95 ms", "quickest ms", title="each with the shrinking it needs")
    for row, values in times_ms.items():
        warm = np.array(values[len(images) :])  # the first round warms up
        quickest = np.median(warm.reshape(args.rounds, len(images)).min(axis=0))
        table.add_row(row, *(f"{value:.3f}" for value in (np.median(warm), np.percentile(warm, 95), quickest)))
    console = Console()
    console.print(table)
    source = f"{len(images)} real" if args.photos else f"{len(images)} drawn"
    console.print(
        f"{source} photographs of {SIDE_PX} x {SIDE_PX}, {args.rounds} rounds; {processor()}; "
        f"OpenCV {cv2.__version__} on {cv2.getNumThreads()} thread; Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
