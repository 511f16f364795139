"""Whether drift is noticed on photographs: `python -m calibration.imagenet.drift FIT TEST`.

FIT and TEST: folders of photographs. The features of FIT make the bins; 500 photographs drawn from TEST, with
replacement where it has fewer, are compared with them as they are, and with a gamma of 2, as after a bad exposure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.artefact.calibration import fit_bins
from jetsel.daemon.drift import KEPT, stability_index
from jetsel.features import NAMES, WORKING_PX, extract

LIMITS = image.Limits(max_bytes=16_000_000, max_pixels=50_000_000)
DECODE_PX = 260
GAMMA_2 = ((np.arange(256) / 255) ** 2 * 255).round().astype(np.uint8)

Change = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


def features_of(folder: Path, change: Change) -> NDArray[np.float32]:
    """The features of every photograph, (n, f)."""
    rows = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        bgr = image.decode(path.read_bytes(), LIMITS, DECODE_PX).bgr
        rows.append(extract(change(bgr), NAMES, WORKING_PX))
    return np.stack(rows)


def main() -> None:
    """Print the indices of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    options = parser.parse_args()
    known = [fit_bins(column) for column in features_of(options.fit, lambda bgr: bgr).T]
    changes: dict[str, Change] = {"as they are": lambda bgr: bgr, "gamma 2": lambda bgr: GAMMA_2[bgr]}
    for name, change in changes.items():
        began = time.perf_counter()
        seen = features_of(options.test, change)
        each_ms = (time.perf_counter() - began) * 1e3 / len(seen)
        drawn = np.random.default_rng(0).integers(0, len(seen), KEPT)
        indices = [
            stability_index(one.shares, one.bins_of(column)) for one, column in zip(known, seen[drawn].T, strict=True)
        ]
        high = sorted(zip(indices, NAMES, strict=True), reverse=True)[:6]
        worst = ", ".join(f"{feature} {index:.2f}" for index, feature in high)
        print(
            f"{name}: median {np.median(indices):.3f}; highest: {worst}; {each_ms:.1f} ms a photograph, with decoding"
        )


if __name__ == "__main__":
    main()
