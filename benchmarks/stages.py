"""Where an image's time goes before and beside the cheapest model. `python -m benchmarks.stages`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import cv2
import msgspec
import numpy as np

from benchmarks.bare import LIMITS
from benchmarks.conditions import conditions
from benchmarks.photographs import JPEG_QUALITY, photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel import image
from jetsel.calibrate.record.cuts import CutImage
from jetsel.client import Client
from jetsel.engines.onnx import OnnxEngine
from jetsel.features import WORKING_PX
from jetsel.image import InputSpec
from jetsel.zoo import STARTER, Family, scan

SIZES = ((500, 375), (1280, 720), (4000, 3000))
SHARE = 0.2  # of the cheapest model's time: the most that a stage in front of it should take at the first size
INTERPOLATIONS: tuple[str, ...] = get_args(get_type_hints(InputSpec)["interpolation"])


def main() -> None:
    """Print a table for each size of image: each stage's median ms, and its share of the cheapest model's time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages", description=__doc__)
    parser.add_argument("--photos", type=Path, help="folder of JPEG files (default: those of scikit-image)")
    parser.add_argument("--models", type=Path, default=STARTER, help="folder with one family (default: the starter's)")
    parser.add_argument("--rounds", type=int, default=20, help="how often each image is taken (default: 20)")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    (family,) = scan([args.models]).families.values()
    given = photographs(args.photos)
    print(f"# Stages\n\n{given}, brought to each size\n")
    print("\n".join(conditions()), flush=True)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as folder:
        own = "paths = []" if args.models == STARTER else f'starter = false\npaths = ["{args.models.resolve()}"]'
        with daemon(Path(folder), f"[models]\n{own}\n") as server, Client(server.address) as client:
            for size in SIZES:
                files = [_resized(data, size) for data in given.files]
                print(f"\n## {size[0]} x {size[1]}, cheapest model {family.models[0].manifest.name}\n")
                headings = ("stage", "median ms", "of the model's time")
                print("\n".join(table(headings, list(_rows(files, family, client, args.rounds)))), flush=True)


def _rows(files: list[bytes], family: Family, client: Client, rounds: int) -> Iterator[list[str]]:
    """Yield a row for each stage; all take turns, so that a busy moment of the machine hits all alike."""
    model = family.models[0]
    spec = model.manifest.input
    engine = OnnxEngine(model.manifest.name, model.path, concurrency=1, threads=1)
    shown = [image.decode(data, LIMITS, family.decode_px) for data in files]
    specs = {name: msgspec.structs.replace(spec, interpolation=name) for name in INTERPOLATIONS}
    rest = list[float]()

    def ask(place: int) -> None:
        began = time.perf_counter()
        stages = client.classify(files[place], model=model.manifest.name, family=family.name).stages_ms
        known = stages.decode + (stages.features or 0.0) + (stages.input or 0.0) + sum(stages.inference)
        rest.append((time.perf_counter() - began) * 1e3 - known)

    stages: dict[str, Callable[[int], object]] = {
        "decode": lambda place: image.decode(files[place], LIMITS, family.decode_px),
        "all features": lambda place: CutImage(shown[place], files[place], shown[place]).extract(LIMITS, WORKING_PX),
    }
    for name, of in specs.items():
        stages[f"input, {name}"] = lambda place, of=of: image.model_input(shown[place], of)  # type: ignore[misc]
    inputs = [image.model_input(photograph, spec) for photograph in shown]
    stages["model"] = lambda place: engine.infer(inputs[place])
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(rounds + 1):
        for place in range(len(files)):
            for name, stage in stages.items():
                began = time.perf_counter()
                stage(place)
                taken[name].append((time.perf_counter() - began) * 1e3)
            ask(place)
    engine.close()
    taken["rest: socket, queues, choice"] = rest
    medians = {
        name: statistics.median(times[len(files) :]) for name, times in taken.items()
    }  # the first round warms up
    for name, median in medians.items():
        used = f", as this model has it{'' if median <= SHARE * medians['model'] else '; over a fifth'}"
        mark = used if name == f"input, {spec.interpolation}" else ""
        yield [name + mark, f"{median:.3f}", f"{median / medians['model']:.2f}"]


def _resized(data: bytes, size: tuple[int, int]) -> bytes:
    """Return an image as JPEG of this (width, height)."""
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    way = cv2.INTER_AREA if size[0] < bgr.shape[1] else cv2.INTER_CUBIC
    encoded = cv2.imencode(".jpg", cv2.resize(bgr, size, interpolation=way), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return encoded[1].tobytes()


if __name__ == "__main__":
    main()
