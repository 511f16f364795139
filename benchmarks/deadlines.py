"""Deadlines without an edge, under load, beside every single model. `python -m benchmarks.deadlines FOLDER`.

Writes calibration/papers/results/mdinference-deadlines.md.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.servers import fitted_daemon
from benchmarks.timer import missed
from calibration.papers.tables import table, written
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.photographs import find_images
from jetsel.client import Client
from jetsel.zoo import STARTER, scan

SEED = 2020
OURS = "deadline"
SLACK_MS = 1.0  # of the bare timer, which never wakes at once


def main() -> None:
    """Have clients ask at once under each policy and deadline, by turns, and write what was right and in time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deadlines", description=__doc__)
    parser.add_argument("folder", type=Path, help="labelled photographs: a folder for each class")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family (the starter family's)")
    parser.add_argument("--deadlines", type=float, nargs="+", default=[30.0, 60.0, 100.0, 200.0], help="in ms")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--most", type=int, default=900, help="photographs, drawn at random")
    args = parser.parse_args()
    (family,) = scan([args.models]).families.values()
    photographs = list(find_images(args.folder, family.labels, None, need_labels=True).photographs)
    random.Random(SEED).shuffle(photographs)
    shown = [(one.path.read_bytes(), family.labels.wnids[one.class_number or 0]) for one in photographs[: args.most]]
    policies = [OURS, *(f"single:{model.manifest.name}" for model in family.models)]
    under = [*conditions(), ""]
    with (
        tempfile.TemporaryDirectory(prefix="jetsel-") as folder,
        fitted_daemon(Path(folder), args.models) as server,
        missed(args.deadlines, SLACK_MS) as timers,
    ):
        found = {
            (ms, policy): _ask(server.address, shown, policy, ms, args.clients)
            for ms in args.deadlines
            for policy in policies
        }
    rows = []
    for (ms, policy), asked in found.items():
        right, total_ms = np.array(asked).T
        in_time = total_ms <= ms
        both = (right * in_time).mean()
        error = math.sqrt(both * (1 - both) / len(asked))
        rows.append(
            f"{ms:g} | {policy} | {100 * in_time.mean():.1f} | {100 * timers[ms]:.1f} "
            f"| {100 * both:.1f} ({100 * error:.1f}) | {np.median(total_ms):.1f}"
        )
    title = f"No edge; {len(shown)} images, {args.clients} clients at once"
    columns = (
        "deadline, ms | policy | in time, % | a timer missed, % | right and in time, % (standard error) | median ms"
    )
    written("mdinference-deadlines", "\n".join([table(title, columns, rows), *under]))


def _ask(
    endpoint: str, shown: Sequence[tuple[bytes, str]], policy: str, deadline_ms: float, clients: int
) -> list[tuple[float, float]]:
    """Return for each photograph whether the answer was right, and its time; infinite where there was none."""

    def share(number: int) -> list[tuple[float, float]]:
        found = []
        with Client(endpoint, retry=False) as client:
            for data, due in shown[number::clients]:
                one = (0.0, math.inf)
                with contextlib.suppress(JetselError):
                    answer = client.classify(data, policy=policy, deadline_ms=deadline_ms)
                    one = (float(answer.wnid == due), answer.stages_ms.total)
                found.append(one)
        return found

    with ThreadPoolExecutor(clients) as pool:
        return [one for rows in pool.map(share, range(clients)) for one in rows]


if __name__ == "__main__":
    main()
