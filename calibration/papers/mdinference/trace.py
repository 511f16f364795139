"""Times of the way to an edge server and back, for `predict`: `python -m calibration.papers.mdinference.trace IMAGE`.

Each line has a time in ms, without the server's own, and the number of bytes sent; whole and reduced images alternate.
"""

from __future__ import annotations

import argparse
import queue
import time
from collections.abc import Iterator
from pathlib import Path

from jetsel.base.errors import JetselError
from jetsel.edge.messages import AskResult
from jetsel.edge.models import open_edge
from jetsel.edge.runner import EdgeClient, EdgePayload
from jetsel.image import decode, jpeg, read_file
from jetsel.site.site import read_site

REDUCED_PX = (448, 320, 224, 160, 112)
REACHED_S = 15.0
PATIENCE_MS = 2000.0  # a longer time counts as this one


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m calibration.papers.mdinference.trace", description=__doc__)
    parser.add_argument("image", type=Path, help="of a usual size")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--every-ms", type=float, default=100.0, help="least time between two requests")
    parser.add_argument("--config", type=Path, help="jetsel.toml with [edge]")
    args = parser.parse_args()
    for took_ms, sent_bytes in traced(args.image, args.config, args.count, args.every_ms):
        print(f"{took_ms:.3f} {sent_bytes}", flush=True)


def traced(image: Path, config: Path | None, count: int, every_ms: float) -> Iterator[tuple[float, int]]:
    """Yield the time of each request in ms and the bytes of its image; the first model of [edge] is asked."""
    site = read_site(config)
    family = site.family(site.config.edge.family)
    content = read_file(image, site.limits)
    whole = decode(content, site.limits, family.decode_px).bgr
    files = [content, *(jpeg(whole, px) for px in REDUCED_PX if px < min(whole.shape[:2]))]
    edge = open_edge(site.config, family)
    if edge is None:
        raise SystemExit("[edge] names no server: set url and models")
    try:
        _wait(edge)
        for number in range(count):
            begun_s, file = time.monotonic(), files[number % len(files)]
            came: queue.SimpleQueue[AskResult | JetselError] = queue.SimpleQueue()
            edge.ask(next(iter(site.config.edge.models)), EdgePayload(file), PATIENCE_MS, came.put)
            answer, took_ms = came.get(), PATIENCE_MS
            if isinstance(answer, AskResult):
                took_ms = min(PATIENCE_MS, answer.total_ms - (answer.server_ms or 0.0))
            yield took_ms, len(file)
            time.sleep(max(0.0, every_ms / 1e3 - (time.monotonic() - begun_s)))
    finally:
        edge.close()


def _wait(edge: EdgeClient) -> None:
    """Wait until the server can be asked."""
    until_s = time.monotonic() + REACHED_S
    while (reason := edge.status().reason) is not None:
        if time.monotonic() > until_s:
            raise SystemExit(f"the edge server cannot be used: {reason}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
