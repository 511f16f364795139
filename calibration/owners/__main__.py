"""An owner's whole way on sets of real images: `python -m calibration.owners DATA`.

DATA: owners.tar, or its folder: SET/train/CLASS/FILE and SET/calibrate/CLASS/FILE. For each set heads are trained on
`train`. `calibrate` is halved: the family is calibrated on one half and evaluated on the other, then the other way
round. With --test DIR it is calibrated on all of `calibrate` and evaluated on DIR/SET/CLASS/FILE. All is done by the
commands that owners have, in a folder of its own for each set. Writes the results, their page, and the table in README.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tarfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from calibration.owners.halves import halves, listed, write_list
from calibration.owners.table import README, readme_with, results_page, turn_of
from jetsel import __version__
from jetsel.base.process import python_command

OUT = Path(__file__).parent
PULLED = "efficientnet-lite"


class Owner:
    """One owner: a folder with models, and for each turn a configuration with calibrations of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        """Make the folder. Raises SystemExit if it exists."""
        if folder.exists():
            raise SystemExit(f"{folder}: it exists already; remove it, or name another folder with --work")
        self.name, self.folder, self.models = name, folder, folder / "models"
        self.seconds: dict[str, list[float]] = {}
        self.models.mkdir(parents=True)

    def run(self, turn: str, step: str, *words: str) -> dict[str, Any]:
        """Run a command of jetsel and return what --json prints; its other words are shown. Raises SystemExit."""
        path = self.folder / f"{turn}.toml"
        path.write_text(
            f'[server]\nendpoint = "ipc://{self.folder}/none.sock"\n[models]\nstarter = false\n'
            f'paths = ["{self.models}"]\ncalibrations = "{self.folder / turn}"\n',
            encoding="utf-8",
        )
        command = [*step.split(), *words, "--config", str(path), "--json"]
        print(f"{self.name}: jetsel {' '.join(command)}", flush=True)
        began = time.monotonic()
        done = subprocess.run(python_command("jetsel", *command), stdout=subprocess.PIPE, text=True, check=False)
        self.seconds.setdefault(step, []).append(round(time.monotonic() - began, 1))
        if done.returncode:
            raise SystemExit(f"{self.name}: jetsel {step} failed with exit status {done.returncode}: see above")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def train(self, images: Path, backbone: str, pulled: Path | None) -> dict[str, Any]:
        """Get the backbone and train its heads. pulled: the folder of models to copy; None pulls them."""
        if pulled is None:
            self.run("train", "models pull", backbone)
        else:
            shutil.copytree(pulled, self.models, dirs_exist_ok=True)
        return self.run("train", "models train-head", str(images), "--family", self.name, "--backbone", backbone)

    def turn(self, fit: Path, test: Path) -> dict[str, Any]:
        """Calibrate on one list of images and evaluate on the other; return what the table needs."""
        made, found = (
            self.run(fit.stem, step, str(file), "--family", self.name, "--recording", str(file.with_suffix(".sqlite")))
            for step, file in (("calibrate", fit), ("evaluate", test))
        )
        return turn_of(made, found)


def one_set(owner: Owner, data: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the whole way on one set, and return its results."""
    trained = owner.train(data / "train", options.backbone, options.models)
    images = listed(data / "calibrate")
    parts = halves(images, options.seed) if options.test is None else (images, listed(options.test / owner.name))
    first, second = (write_list(part, owner.folder / f"part-{number}.csv") for number, part in enumerate(parts, 1))
    turns = [(first, second), (second, first)] if options.test is None else [(first, second)]
    return {
        "classes": len(trained["classes"]),
        "trained_on": trained["photographs"],
        "calibrated_on": len(images),
        "turns": [owner.turn(fit, test) for fit, test in turns],
        "seconds": owner.seconds,
    }


def opened(data: Path, work: Path) -> Path:
    """Return the folder of the sets; a tar is extracted below `work`."""
    if data.is_dir():
        return data
    with tarfile.open(data) as tar:
        tar.extractall(work / "data", filter="data")
    return work / "data"


def main(words: Sequence[str] | None = None) -> None:
    """Run the sets one after the other, print the page, and write it beside the results."""
    parser = argparse.ArgumentParser(prog="python -m calibration.owners", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="owners.tar, or its folder")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="sets to run (default: all)")
    parser.add_argument("--test", type=Path, metavar="DIR", help="other images to evaluate on: SET/CLASS/FILE")
    parser.add_argument("--backbone", default=PULLED, help="family that heads are trained on (%(default)s)")
    parser.add_argument("--models", type=Path, metavar="DIR", help="folder with the backbone (default: pull it)")
    parser.add_argument("--seed", type=int, default=2018, help="of the halves (%(default)s)")
    parser.add_argument("--work", type=Path, default=Path("build/owners"), help="folder to work in (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results; the default renews README too")
    options = parser.parse_args(words)
    work = options.work.resolve()
    data = opened(options.data, work)
    names = options.sets or sorted(path.parent.name for path in data.glob("*/calibrate"))
    describe = ["git", "-C", str(OUT), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    version = f"- jetsel {__version__}, commit {commit}, {datetime.now(timezone.utc).date()}; seed {options.seed}"
    results: dict[str, Any] = {"conditions": [*conditions(), version], "backbone": options.backbone, "sets": {}}
    for name in names:
        results["sets"][name] = one_set(Owner(name, work / name), data / name, options)
    page = results_page(results)
    print(page)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (options.out / "RESULTS.md").write_text(page, encoding="utf-8")
    if options.out.resolve() == OUT.resolve():
        README.write_text(readme_with(README.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
