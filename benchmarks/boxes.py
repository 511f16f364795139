"""What boxes in one request save beside a request for each. `python -m benchmarks.boxes --models DIR`.

One worker and one request at a time, so that the time beyond the models' own is what all else takes. Beside one request
with all boxes: a request with the whole image for each box, and one with each box's pixels, which the caller has cut
out and encoded as JPEG before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import cv2
import numpy as np

from benchmarks.conditions import conditions
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel import image
from jetsel.client import Client
from jetsel.wire import Answer
from jetsel.zoo import STARTER

SEED = 2026
WIDTH_PX, HEIGHT_PX = 1280, 720
SIDES_PX = (80, 300)  # of a box

Ask = Callable[[bytes], list[Answer]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boxes", description=__doc__)
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family (the starter family's)")
    parser.add_argument("--model", help="one model of it (default: the family's policy)")
    parser.add_argument("--boxes", type=int, default=8, help="boxes of an image")
    parser.add_argument("--rounds", type=int, default=30, help="times that each image is asked about")
    args = parser.parse_args()
    print(f"# {args.boxes} boxes of an image of {WIDTH_PX} x {HEIGHT_PX}\n")
    print("\n".join(conditions()), flush=True)
    drawn = np.random.default_rng(SEED)
    sides = drawn.integers(*SIDES_PX, size=(args.boxes, 2))
    corners = drawn.integers(0, np.array([WIDTH_PX, HEIGHT_PX]) - sides)
    boxes = np.hstack([corners, sides]).tolist()
    files = [_large(data) for data in photographs(None).files]
    own = "" if args.models == STARTER else f'[models]\nstarter = false\npaths = ["{args.models.resolve()}"]\n'
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="jetsel-")))
        client = running.enter_context(Client(running.enter_context(daemon(folder, f"workers = 1\n{own}")).address))
        ways = _ways(client, args.model, boxes)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(args.rounds + 1):  # the first is to warm up
            for data in files:
                for name, ask in ways.items():
                    taken[name] += [_timed(ask, data)] * (number > 0)
    print("\n" + "\n".join(table(("", "ms", "of it models, ms", "beyond, ms", "beyond / one request's"), _rows(taken))))


def _ways(client: Client, model: str | None, boxes: list[list[float]]) -> dict[str, Ask]:
    cut: dict[bytes, list[bytes]] = {}

    def together(data: bytes) -> list[Answer]:
        return [one for one in client.classify(data, model=model, boxes=boxes) if isinstance(one, Answer)]

    def each_whole(data: bytes) -> list[Answer]:
        found = [client.classify(data, model=model, boxes=[box]) for box in boxes]
        return [one for (one,) in found if isinstance(one, Answer)]

    def prepared(data: bytes) -> list[Answer]:
        if data not in cut:
            bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            assert bgr is not None
            cut[data] = [image.jpeg(bgr[y : y + high, x : x + wide]) for x, y, wide, high in np.array(boxes, int)]
        return [client.classify(crop, model=model) for crop in cut[data]]

    return {"one request": together, "a request for each, the whole image": each_whole, "and its pixels": prepared}


def _large(data: bytes) -> bytes:
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert bgr is not None
    return image.jpeg(cv2.resize(bgr, (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_CUBIC))


def _timed(ask: Ask, data: bytes) -> tuple[float, float]:
    """Return the wall time of all answers, and how much of it models took, in ms."""
    began_s = time.perf_counter()
    answers = ask(data)
    took_ms = (time.perf_counter() - began_s) * 1e3
    return took_ms, sum(ran.latency_ms / ran.batch for answer in answers for ran in answer.ran)


def _rows(taken: dict[str, list[tuple[float, float]]]) -> list[list[str]]:
    first, *_ = taken.values()
    rows = []
    for name, times in taken.items():
        total_ms, models_ms = (statistics.median(column) for column in zip(*times, strict=True))
        beyond = [total - models for total, models in times]
        ratios = [own / (total - models) for own, (total, models) in zip(beyond, first, strict=True)]
        beyond_ms = statistics.median(beyond)
        rows.append(
            [name, f"{total_ms:.1f}", f"{models_ms:.1f}", f"{beyond_ms:.1f}", f"{statistics.median(ratios):.2f}"]
        )
    return rows


if __name__ == "__main__":
    main()
