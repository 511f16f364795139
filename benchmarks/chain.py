"""What a choice of the chain takes, features left out. `python -m benchmarks.chain`."""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.conditions import conditions
from jetsel.premodel import Chain, Neighbours, fit_scaling, worthiest

QUERIES, SEED = 2000, 2018


def main() -> None:
    """Print median and 90 % quantile of reading the neighbours of an image and choosing a path."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain", description=__doc__)
    parser.add_argument("--images", type=int, default=8000, help="cached images (%(default)s)")
    parser.add_argument("--paths", type=int, default=30, help="paths to choose from (%(default)s)")
    parser.add_argument("--features", type=int, default=7, help="features of an image (%(default)s)")
    parser.add_argument("--neighbours", type=int, default=601, help="neighbours that are asked (%(default)s)")
    args = parser.parse_args()
    draw = np.random.default_rng(SEED)
    known = draw.random((args.images, args.features), dtype=np.float32)
    scaling = fit_scaling(known)
    right = draw.random((args.images, args.paths)) < 0.5
    cost = draw.random((args.images, args.paths)).astype(np.float32)
    chain = Chain(Neighbours(scaling.apply(known)), scaling, right, cost, args.neighbours)
    times_ms = []
    for query in draw.random((QUERIES, args.features), dtype=np.float32):
        began = time.perf_counter()
        reading = chain.estimate(query)
        worthiest(reading.right, reading.cost, 0.1)
        times_ms.append((time.perf_counter() - began) * 1e3)
    print("# A choice of the chain\n")
    print("\n".join(conditions()))
    shape = f"{args.images} images, {args.features} features, {args.paths} paths, {args.neighbours} neighbours"
    print(f"\n{shape}: median {np.median(times_ms):.3f} ms, 90 % within {np.quantile(times_ms, 0.9):.3f} ms")


if __name__ == "__main__":
    main()
