"""How long planning a fleet takes, and in how much memory. `python -m benchmarks.fleet_plan FOLDER`.

Writes calibration/papers/results/modi-fleet.md.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.conditions import conditions
from calibration.papers.tables import table, written
from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.manager.devices import read_devices
from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.manager.planning import Planner, Proposal
from jetsel.addons.fleet.publishing import files_of
from jetsel.addons.fleet.signing import make_key, read_key
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import DaemonUsage, DeviceLimits, FamilyUsage, ModelUsage, Usage, usage_path
from jetsel.artefact import installed
from jetsel.zoo import Family, scan

BOARDS = {"TX2": 6.0, "Nano": 9.0, "Xavier NX": 3.0, "Orin Nano": 1.5}  # times of the calibration's machine: assumed
STORAGE_MB = (20, 25, 30, 45, 60)
BUDGETS_W = (None, 6.0, 8.0)
IDLE_W, PERIOD_S, SPREAD = 4.0, 3600.0, 0.03  # of times from one device to the next of its board


def main() -> None:
    """Simulate devices that each tell a few lines, and print what each step of planning them takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_plan", description=__doc__)
    parser.add_argument("models", type=Path, help="a folder with a family whose calibration kept its answers")
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=24, help="of each device: a day of hours")
    args = parser.parse_args()
    (family,) = scan([args.models]).families.values()
    under = [*conditions(), f"- {args.devices:,} simulated devices, {args.lines} lines each; family {family.name}\n"]
    steps: list[str] = []
    with tempfile.TemporaryDirectory(prefix="jetsel-") as folder:
        storage, key = Storage(f"{folder}/repository"), f"{folder}/key"
        trusted = [make_key(Path(key))]
        _publish(storage, family, read_key(Path(key)), Path(folder))
        _simulate(storage, family, args.devices, args.lines)
        with _timed("uploads become Parquet", steps):
            metadata = Metadata(storage)
            metadata.gather()
        with _timed("lines add up by device", steps):
            devices = read_devices(metadata)
        with _timed("all devices are planned", steps):
            planner = Planner(storage, trusted)
            proposals = [planner.propose(name, device) for name, device in devices.items()]
    made = table("Planning a fleet", "step | seconds | of the processor | most memory so far, MB", steps)
    written("modi-fleet", "\n".join([made, _planned(proposals, planner), *under]))


@contextmanager
def _timed(step: str, steps: list[str]) -> Iterator[None]:
    began, worked = time.perf_counter(), time.process_time()
    yield
    took_s, worked_s = time.perf_counter() - began, time.process_time() - worked
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    steps.append(f"{step} | {took_s:.1f} | {worked_s:.1f} | {most_mb:,.0f}")


def _publish(storage: Storage, family: Family, private: str, folder: Path) -> None:
    publishing.init(storage, [private])
    files, models = files_of(family, folder / "none")
    publishing.publish(storage, family.name, models, files, [private], [])


def _simulate(storage: Storage, family: Family, devices: int, lines: int) -> None:
    shipped = installed.shipped(family.calibration_folder)
    if shipped is None:
        raise SystemExit(f"family {family.name} has no calibration: calibrate it, or take efficientnet-lite")
    costs_ms, draw = shipped.usable_calibration().costs_ms, np.random.default_rng(1)
    for number in range(devices):
        board = list(BOARDS.values())[draw.integers(len(BOARDS))]
        asked = int(PERIOD_S * draw.choice([0.01, 0.1, 1.0, 10.0]))
        models = []
        for name, cost_ms in costs_ms.items():
            ms = float(board * cost_ms * draw.normal(1, SPREAD))
            models.append(ModelUsage(name=name, runs=asked, cost_ms=ms, p95_ms=1.2 * ms, energy_mj=5 * ms))
        told = FamilyUsage(
            name=family.name, answers=asked, escalated=0, by_model={}, by_policy={}, models=tuple(models)
        )
        limits = DeviceLimits(
            storage_mb=float(draw.choice(STORAGE_MB)), budget_w=BUDGETS_W[draw.integers(len(BUDGETS_W))]
        )
        usage = Usage(
            device=f"device-{number:05d}",
            series="s",
            sequence=1,
            at_s=0.0,
            plan=0,
            limits=limits,
            daemon=DaemonUsage(
                requests={"ok": asked},
                families=(told,),
                watts=IDLE_W + asked / PERIOD_S * 0.05,
                energy_j=asked * 0.05,
            ),
        )
        day = [msgspec.structs.replace(usage, sequence=one + 1, at_s=PERIOD_S * one) for one in range(lines)]
        storage.write(usage_path(usage), gzip.compress(b"\n".join(map(msgspec.json.encode, day))))


def _planned(proposals: list[Proposal], planner: Planner) -> str:
    after = [one.after for one in proposals if one.after is not None]
    chosen: dict[str, int] = {}
    for one in after:
        for cascade in one.cascades.values():
            chosen[", ".join(cascade)] = chosen.get(", ".join(cascade), 0) + 1
    rows = [f"{models} | {count:,}" for models, count in sorted(chosen.items(), key=lambda item: -item[1])]
    said = f"{len(planner.solved):,} of them were solved, the others are equal to one that was; "
    said += f"{len(proposals) - len(after):,} hold nothing, since nothing fits.\n"
    return "\n".join([table("What they hold", "models | devices", rows), said])


if __name__ == "__main__":
    main()
