"""Promised error rates, live through the daemon: `python -m benchmarks.promises FIT TEST [--unknown FIT TEST]`.

`jetsel calibrate FIT` is run first, with the unknown images if there are any, unless `--shipped` says that the
calibration which came with the models is to be judged. Then the daemon is asked about each image of TEST at each level.
Unknown images of TEST are mixed in, so that they are a third of all. The time of early refusal is that of a request
that refuses, beside the same request that wants a doubtful answer, by turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.servers import daemon
from jetsel.base.errors import InDoubtError, RequirementsError
from jetsel.calibrate.judge.learn_then_test import LEVELS
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.calibrate.record.photographs import find_images
from jetsel.client import Client
from jetsel.zoo import STARTER, scan

SEED = 2026
UNKNOWN_SHARE = 1 / 3


@dataclass(frozen=True)
class Asked:
    """One image at one level. is_right: None if it was refused. is_known: whether it has a right answer at all."""

    is_known: bool
    is_right: bool | None
    refusing_ms: float
    using_ms: float


def main() -> None:
    """Calibrate, ask and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promises", description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path, help="labelled images to calibrate on: a folder or a CSV")
    parser.add_argument("test", type=Path, help="other labelled images, to judge on")
    parser.add_argument("--unknown", type=Path, nargs=2, metavar=("FIT", "TEST"), help="images of nothing it knows")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with the family's models (%(default)s)")
    parser.add_argument("--family", default="starter", help="its name (%(default)s)")
    parser.add_argument("--shipped", action="store_true", help="judge the calibration that came with the models")
    parser.add_argument("--most", type=int, default=3000, help="images of TEST that are asked about (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        folder = Path(name)
        own = "" if options.models == STARTER else f'paths = ["{options.models.resolve()}"]\n'
        settings = f'[models]\n{own}default_family = "{options.family}"\ncalibrations = "{folder}/calibrations"\n'
        (folder / "fit.toml").write_text(settings, encoding="utf-8")
        command = ["calibrate", str(options.fit), "--family", options.family, "--config", str(folder / "fit.toml")]
        command += ["--unknown", str(options.unknown[0])] if options.unknown else []
        if not options.shipped:
            subprocess.run([sys.executable, "-m", "jetsel", *command, "--force"], check=True)
        images = _images(options)
        with daemon(folder, settings) as server, Client(server.address) as client:
            print("\n# Promised error rates, live through the daemon\n")
            print("\n".join(conditions()), flush=True)
            policy = client.status().families[0].default_policy
            known = sum(wnid is not None for _, wnid in images)
            print(f"\n{known} known and {len(images) - known} unknown images; policy {policy}\n\n{HEADER}")
            for level in LEVELS:
                print(_level(client, images, level, options.family), flush=True)


def _images(options: argparse.Namespace) -> list[tuple[Path, str | None]]:
    """Return the images and their classes, None for unknown ones, mixed."""
    folder = Path(options.models)
    family = scan([folder]).families[options.family]
    draw = np.random.default_rng(SEED)
    found = find_images(options.test, family.labels, None, need_labels=True).photographs
    known = [(one.path, family.labels.wnids[one.class_number or 0]) for one in found]
    images: list[tuple[Path, str | None]] = [known[place] for place in draw.permutation(len(known))[: options.most]]
    if options.unknown:
        others = sorted(path for path in options.unknown[1].rglob("*") if path.is_file())
        wanted = round(len(images) * UNKNOWN_SHARE / (1 - UNKNOWN_SHARE))
        images += [(others[place], None) for place in draw.permutation(len(others))[:wanted]]
    return [images[place] for place in draw.permutation(len(images))]


def _level(client: Client, images: Sequence[tuple[Path, str | None]], level: float, family: str) -> str:
    """Ask about every image, and return the row of the table."""
    asked = []
    for number, (path, wnid) in enumerate(images):
        data, right, took_ms = path.read_bytes(), None, {}
        for on_doubt in ("refuse", "use") if number % 2 else ("use", "refuse"):
            began = time.perf_counter()
            try:
                answer = client.classify(data, family=family, wrong_at_most=level, on_doubt=on_doubt)
                right = right if answer.in_doubt else answer.wnid == wnid
            except InDoubtError:
                pass
            except RequirementsError as error:
                return f"| {100 * level:g} % | {error} | | | | |"
            took_ms[on_doubt] = (time.perf_counter() - began) * 1e3
        asked.append(Asked(wnid is not None, right, took_ms["refuse"], took_ms["use"]))
    answered = [one for one in asked if one.is_right is not None]
    wrong = np.array([not one.is_right for one in answered])
    of_known = np.array([not one.is_right for one in answered if one.is_known])
    interval = share_interval(wrong)
    refused = [one.is_right is None for one in asked if not one.is_known]
    saved = 1 - np.mean([one.refusing_ms for one in asked]) / np.mean([one.using_ms for one in asked])
    cells = [
        f"{100 * level:g} %",
        f"{100 * len(of_known) / sum(one.is_known for one in asked):.1f} %",
        f"{100 * of_known.mean():.1f} %",
        f"{100 * wrong.mean():.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})",
        f"{100 * np.mean(refused):.1f} %" if refused else "-",
        f"{100 * saved:.0f} %",
    ]
    return f"| {' | '.join(cells)} |"


HEADER = """| wrong at most | known images answered | of those wrong | of all answers wrong (95 %) | unknown refused | \
time saved by refusing |
|---:|---:|---:|---:|---:|---:|"""


if __name__ == "__main__":
    main()
