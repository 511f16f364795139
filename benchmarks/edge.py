"""Deadlines with an edge behind a bad link, and without. As root: `python -m benchmarks.edge FOLDER`.

Writes calibration/papers/results/mdinference-edge.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.link import THERE, Link, Quality, link, there
from benchmarks.servers import daemon, fitted_daemon, gateway
from benchmarks.timer import missed
from calibration.papers.mdinference.predict import predicted
from calibration.papers.mdinference.trace import traced
from calibration.papers.tables import table, written
from jetsel.base.errors import JetselError
from jetsel.calibrate.record.photographs import find_images
from jetsel.client import Client
from jetsel.wire import Answer
from jetsel.zoo import STARTER, scan
from tests.waiting import until

SEED = 2020
TRACED = 300
SLACK_MS = 5.0
CUT_DEADLINE_MS = 300.0
Prediction = dict[tuple[float, str, str], float]
PORT = 8000
CUT_S, AFTER_S = 3.0, 10.0
WAYS: dict[str, dict[str, Any]] = {
    "with the edge": {},
    "device alone": {"on_device": True},
}
SIMULATED = {"with the edge": ("deadline", "with the edge server"), "device alone": ("deadline", "device alone")}


@dataclass(frozen=True)
class Asked:
    """One request. answer: None where it failed."""

    is_right: bool
    answer: Answer | None


def main() -> None:
    """Ask for every photograph at every deadline, with the edge and without, by turns; then predict the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edge", description=__doc__)
    parser.add_argument("folder", type=Path, help="labelled photographs: a folder for each class")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family (the starter family's)")
    parser.add_argument(
        "--device", type=int, default=2, help="how many of its models are on the device, cheapest first"
    )
    parser.add_argument("--deadlines", type=float, nargs="+", default=[40.0, 80.0, 150.0, 300.0], help="in ms")
    parser.add_argument("--most", type=int, default=900, help="photographs, drawn at random")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="of each way, in the mean")
    parser.add_argument("--jitter-ms", type=float, default=14.0, help="its standard deviation, of each way")
    parser.add_argument("--loss", type=float, default=0.01)
    parser.add_argument("--megabits", type=float, default=20.0)
    parser.add_argument("--edge-models", type=Path, help="a file with [edge.models]; else the calibration's")
    parser.add_argument("--recording", type=Path, help="of these photographs by all models: `jetsel evaluate` makes it")
    args = parser.parse_args()
    quality = Quality(args.delay_ms, args.jitter_ms, args.loss, args.megabits)
    (family,) = scan([args.models]).families.values()
    photographs = list(find_images(args.folder, family.labels, None, need_labels=True).photographs)
    random.Random(SEED).shuffle(photographs)
    photographs = photographs[: args.most]
    names = [model.manifest.name for model in family.models]
    under = conditions()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as place, link(quality, SEED) as opened:
        folder = Path(place)
        listen = f"{THERE}:{PORT}"
        away = "\n".join(f'[edge.models.{name}]\nremote = "{family.name}.{name}"' for name in names[args.device :])
        away = away if args.edge_models is None else args.edge_models.read_text()
        settings = _settings(args.models, folder / "edge", names[: args.device], away)
        with (
            fitted_daemon(folder / "edge", args.models) as edge,
            gateway(folder, edge, "--behind-proxy", within=there(()), listen=listen),
            daemon(folder / "device", settings) as server,
            Client(server.address, timeout_ms=60_000) as client,
        ):
            until(lambda: _is_there(client))
            config = folder / "device" / "jetsel.toml"
            trace = _trace(folder / "link.txt", config, photographs[0].path)
            found: dict[tuple[float, str], list[Asked]] = {(ms, way): [] for ms in args.deadlines for way in WAYS}
            with missed(args.deadlines, SLACK_MS) as timers:
                for photograph in photographs:
                    data, due = photograph.path.read_bytes(), family.labels.wnids[photograph.class_number or 0]
                    for deadline_ms, way in found:
                        found[deadline_ms, way].append(_ask(client, data, due, deadline_ms, WAYS[way]))
            cut = _cut(client, opened, quality, [one.path.read_bytes() for one in photographs[:100]])
            status = client.status().edge
            by_simulation = _predicted(args.recording, trace, config, args.deadlines)
        under += [
            f"- link: {quality.delay_ms:g} ± {quality.jitter_ms:g} ms each way, {100 * quality.loss:g} % loss, "
            f"{quality.megabits_per_s:g} Mbit/s",
            f"- {cut}",
            f"- the edge server, at the end: {status}",
            "",
        ]
        title = f"{len(photographs)} images, one client, by turns; device: {', '.join(names[: args.device])}"
        written("mdinference-edge", "\n".join([_table(title, found, timers, by_simulation), *under]))


def _settings(models: Path, edge: Path, device: Sequence[str], away: str) -> str:
    own = "" if models == STARTER else f'starter = false\npaths = ["{models.resolve()}"]\n'
    return (
        f'[models]\n{own}calibrations = "{edge}/calibrations"\nonly = {json.dumps(list(device))}\n'
        f'[edge]\nurl = "http://{THERE}:{PORT}"\n{away}\n[power]\nsensor = "none"\n'
    )


def _is_there(client: Client) -> bool:
    edge = client.status().edge
    return edge is not None and edge.reason is None


def _trace(path: Path, config: Path, photograph: Path) -> Path:
    lines = [f"{took_ms:.3f} {sent_bytes}\n" for took_ms, sent_bytes in traced(photograph, config, TRACED, 20.0)]
    path.write_text("".join(lines))
    return path


def _ask(client: Client, data: bytes, due: str, deadline_ms: float, way: dict[str, Any]) -> Asked:
    try:
        answer = client.classify(data, deadline_ms=deadline_ms, **way)
    except JetselError:
        return Asked(False, None)
    return Asked(answer.wnid == due, answer)


def _cut(client: Client, opened: Link, quality: Quality, photographs: Sequence[bytes]) -> str:
    """Cut the link and restore it while requests go on; return what became of them."""
    began_s, late, failed, asked, back_s = time.monotonic(), 0, 0, 0, None
    opened.become(replace(quality, is_cut=True))
    is_cut = True
    for data in itertools.cycle(photographs):
        passed_s = time.monotonic() - began_s
        if is_cut and passed_s > CUT_S:
            opened.become(quality)
            is_cut = False
        if back_s is not None or passed_s > CUT_S + AFTER_S:
            break
        asked += 1
        try:
            answer = client.classify(data, deadline_ms=CUT_DEADLINE_MS)
        except JetselError:
            failed += 1
            continue
        late += answer.stages_ms.total > CUT_DEADLINE_MS + SLACK_MS
        if not is_cut and answer.model.startswith("edge:"):
            back_s = time.monotonic() - began_s - CUT_S
    again = "never used again" if back_s is None else f"used again {back_s:.2f} s after it was restored"
    return (
        f"the link was cut for {CUT_S:g} s: of {asked} requests within {CUT_DEADLINE_MS:g} ms {failed} failed and "
        f"{late} were late; the edge was {again}"
    )


def _predicted(recording: Path | None, trace: Path, config: Path, deadlines_ms: Sequence[float]) -> Prediction:
    """Return the predicted accuracy by deadline, policy and models."""
    if recording is None:
        return {}
    rows = predicted(recording, config, [str(trace)], deadlines_ms, ["deadline"])
    return {(row["deadline_ms"], row["policy"], row["models"]): row["effective"] for row in rows}


def _table(
    title: str, found: dict[tuple[float, str], list[Asked]], timers: dict[float, float], by_simulation: Prediction
) -> str:
    columns = (
        "deadline, ms | models | right, % (standard error) | within + 5 ms, % | a timer missed, % | by the edge, % "
        "| median ms | 99 % within, ms | predicted, %"
    )
    lines = []
    for (deadline_ms, way), rows in found.items():
        right = np.array([row.is_right for row in rows])
        answers = [row.answer for row in rows if row.answer is not None]
        total_ms = np.array([answer.stages_ms.total for answer in answers])
        within = (total_ms <= deadline_ms + SLACK_MS).sum() / len(rows)
        there_share = sum(answer.model.startswith("edge:") for answer in answers) / len(rows)
        error = math.sqrt(right.mean() * (1 - right.mean()) / len(rows))
        told = by_simulation.get((deadline_ms, *SIMULATED[way]))
        lines.append(
            f"{deadline_ms:g} | {way} | {100 * right.mean():.1f} ({100 * error:.1f}) | {100 * within:.1f} "
            f"| {100 * timers[deadline_ms]:.1f} | {100 * there_share:.1f} | {np.quantile(total_ms, 0.5):.1f} "
            f"| {np.quantile(total_ms, 0.99):.1f} | {'-' if told is None else f'{100 * told:.1f}'}"
        )
    return table(title, columns, lines)


if __name__ == "__main__":
    main()
