"""What a policy adds to chance, from kept results: `python -m calibration.papers.coins [RESULTS]`.

RESULTS is a file that `calibration.starter.calibrate` wrote; left out, results/calibrate.json. Prints under top-1 each
policy's points over the best mix of two single models that takes the same mean time, and, for a policy that runs one
model for each photograph, over dealing its own shares of the models to the photographs at random.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from jetsel.calibrate.metrics import best_mix

RESULTS = Path(__file__).parents[1] / "starter/results/calibrate.json"


def main() -> None:
    """Read the results and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    found = json.loads(parser.parse_args().results.read_text())["comparisons"]["top1"]
    policies = found["policies"]
    single = {name.removeprefix("single:"): one for name, one in policies.items() if name.startswith("single:")}
    times_ms = np.array([one["time_ms"]["mean"] for one in single.values()])
    shares = np.array([one["top1"] for one in single.values()])
    print("| policy | top-1 % | mean ms | points over a coin | points over dealing its own shares |")
    print("|---|---:|---:|---:|---:|")
    for name, one in {**policies, "random": found["bounds"]["random"]}.items():
        coin = best_mix(times_ms, shares, one["time_ms"]["mean"])
        beside = "-" if coin is None else f"{100 * (one['top1'] - coin):+.2f}"
        dealt = sum(one["runs"].get(model, 0.0) * right for model, right in zip(single, shares, strict=True))
        runs_one = abs(sum(one["runs"].values()) - 1) < 1e-6
        own = f"{100 * (one['top1'] - dealt):+.2f}" if runs_one else "-"
        print(f"| {name} | {100 * one['top1']:.2f} | {one['time_ms']['mean']:.2f} | {beside} | {own} |")


if __name__ == "__main__":
    main()
