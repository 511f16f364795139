"""Whether features of full-size photographs mean what they mean at 64 pixels: calibration.starter.transfer FOLDER.

FOLDER holds full-size photographs. Each is compared with its own copy of 64 x 64 pixels: feature by feature, and in
what the shipped chain chooses.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.features import NAMES, extract
from jetsel.policies.catalogue import catalogue
from jetsel.policies.coding import read
from jetsel.zoo import STARTER, scan

LIMITS = image.Limits(max_bytes=16_000_000, max_pixels=50_000_000)
SIDE_PX = 64
JPEG_QUALITY = 90


def small_copy(bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The middle square at 64 x 64, through JPEG, as the photographs are that the chain was fitted on."""
    height, width = bgr.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = cv2.resize(bgr[top : top + side, left : left + side], (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
    _, encoded = cv2.imencode(".jpg", square, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return image.decode(encoded.tobytes(), LIMITS, SIDE_PX).bgr


def main() -> None:
    """Print a row for each feature, and how often the chain chooses the same model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    family = scan([STARTER]).families["starter"]
    calibration = read(STARTER / "calibration")
    paths = sorted(path for path in options.folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    large, small = [], []
    for path in paths:
        data = path.read_bytes()
        large.append(extract(image.decode(data, LIMITS, family.decode_px).bgr))
        small.append(extract(small_copy(image.decode(data, LIMITS, 1_000_000).bgr)))
    full, copies = np.stack(large), np.stack(small)
    print(f"{len(paths)} photographs, each beside its own copy of {SIDE_PX} x {SIDE_PX} pixels\n")
    print("| feature | mean | of the copies | correlation |\n|---|---:|---:|---:|")
    for i, name in enumerate(NAMES):
        varies = full[:, i].std() > 0 and copies[:, i].std() > 0
        r = f"{np.corrcoef(full[:, i], copies[:, i])[0, 1]:.2f}" if varies else "never changes"
        print(f"| {name} | {full[:, i].mean():.3f} | {copies[:, i].mean():.3f} | {r} |")
    columns = [NAMES.index(name) for name in calibration.features]
    chain = catalogue([*calibration.identities], calibration)["top1"]["chain"].chain
    choices = [(chain.choose(a), chain.choose(b)) for a, b in zip(full[:, columns], copies[:, columns], strict=True)]
    same = np.mean([a.model == b.model for a, b in choices])
    by_chance = _by_chance([a.model for a, _ in choices], [b.model for _, b in choices])
    apart = [float(np.median([pair[i].distance for pair in choices])) for i in (0, 1)]
    print(f"\nthe chain chooses the same model for {100 * same:.0f} % (by chance {100 * by_chance:.0f} %)")
    print(f"median distance to the neighbours: {apart[0]:.3f}, of the copies {apart[1]:.3f}")


def _by_chance(first: list[str | None], second: list[str | None]) -> float:
    """How often two that choose as often, each without the other, would agree."""
    return sum(first.count(model) * second.count(model) for model in set(first)) / len(first) ** 2


if __name__ == "__main__":
    main()
