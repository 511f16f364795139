"""How long each policy takes to replay over a recording. `python -m benchmarks.replay RECORDING`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from jetsel.artefact.coding import read
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.registry import catalogue
from jetsel.zoo import STARTER, scan

ROUNDS = 3


def main() -> None:
    """Print the median of three replays of each of the starter family's policies."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("recording", type=Path, help="of the starter family, as jetsel calibrate makes it")
    args = parser.parse_args()
    recording = load(args.recording, scan([STARTER]).families["starter"]).recording
    calibration = read(STARTER / "calibration")
    rows = range(len(recording.classes))
    print("# Replaying policies\n")
    print("\n".join(conditions()), flush=True)
    print(f"\n{len(rows)} photographs, median of {ROUNDS} replays\n\n| policy | seconds |\n|---|---:|")
    for name, policy in catalogue(recording.models, calibration).items():
        if ":" in name and not name.startswith("single:"):  # other points of a front take as long
            continue
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            replay_all(policy, recording, rows, calibration.temperatures, recording.models[-1])
            times.append(time.perf_counter() - began)
        print(f"| {name} | {np.median(times):.2f} |", flush=True)


if __name__ == "__main__":
    main()
