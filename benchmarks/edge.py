"""Deadlines with an edge behind a bad link, and without. As root: `python -m benchmarks.edge FOLDER`."""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.servers import daemon, fitted_daemon, gateway
from benchmarks.timer import missed
from jetsel.calibrate.record import find
from jetsel.client import Client
from jetsel.errors import JetselError
from jetsel.wire import Answer
from jetsel.zoo import STARTER, scan
from tests.link import THERE, Quality, link, there
from tests.waiting import until

SEED = 2020
TRACED = 300
SLACK_MS = 5.0
PORT = 8000
WAYS = {"with the edge": False, "device alone": True}


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
    parser.add_argument("--recording", type=Path, help="of these photographs by all models: `jetsel evaluate` makes it")
    args = parser.parse_args()
    quality = Quality(args.delay_ms, args.jitter_ms, args.loss, args.megabits)
    (family,) = scan([args.models]).families.values()
    photographs = list(find(args.folder, family.labels, None, need_labels=True).photographs)
    random.Random(SEED).shuffle(photographs)
    photographs = photographs[: args.most]
    names = [model.manifest.name for model in family.models]
    print("# Deadlines and the edge\n")
    print("\n".join(conditions()))
    print(f"- link: {quality}", flush=True)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as place, link(quality, SEED):
        folder = Path(place)
        listen = f"{THERE}:{PORT}"
        with (
            fitted_daemon(folder / "edge", args.models) as edge,
            gateway(folder, edge, "--behind-proxy", within=there(()), listen=listen),
            daemon(
                folder / "device", _settings(args.models, folder / "edge", family.name, names, args.device)
            ) as server,
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
                        asked = _ask(client, data, due, deadline_ms, on_device=WAYS[way])
                        found[deadline_ms, way].append(asked)
            status = client.status().edge
            predicted = _predicted(args.recording, trace, config, args.deadlines)
        print(f"\n{len(photographs)} photographs, one client, by turns; device: {', '.join(names[: args.device])}\n")
        _print(found, timers, predicted)
        print(f"\nthe edge, at the end: {status}")


def _settings(models: Path, edge: Path, family: str, names: Sequence[str], device: int) -> str:
    own = "" if models == STARTER else f'starter = false\npaths = ["{models.resolve()}"]\n'
    away = "\n".join(f'[edge.models.{name}]\nremote = "{family}.{name}"' for name in names[device:])
    return (
        f'[models]\n{own}calibrations = "{edge}/calibrations"\nonly = {json.dumps(list(names[:device]))}\n'
        f'[edge]\nurl = "http://{THERE}:{PORT}"\n{away}\n[power]\nsensor = "none"\n'
    )


def _is_there(client: Client) -> bool:
    edge = client.status().edge
    return edge is not None and edge.reason is None


def _trace(path: Path, config: Path, photograph: Path) -> Path:
    command = [sys.executable, "-m", "jetsel", "edge", "trace", str(photograph), "--count", str(TRACED)]
    with path.open("w") as out:
        subprocess.run([*command, "--every-ms", "20", "--config", str(config)], stdout=out, check=True)
    return path


def _ask(client: Client, data: bytes, due: str, deadline_ms: float, *, on_device: bool) -> Asked:
    try:
        answer = client.classify(data, deadline_ms=deadline_ms, on_device=on_device)
    except JetselError:
        return Asked(False, None)
    return Asked(answer.wnid == due, answer)


def _predicted(recording: Path | None, trace: Path, config: Path, deadlines_ms: Sequence[float]) -> dict[str, float]:
    """Return the accuracy that `jetsel simulate` tells, by deadline and way."""
    if recording is None:
        return {}
    command = [sys.executable, "-m", "jetsel", "simulate", "--recording", str(recording), "--network", str(trace)]
    command += [option for ms in deadlines_ms for option in ("--sla-ms", f"{ms:g}")]
    told = subprocess.run([*command, "--json", "--config", str(config)], stdout=subprocess.PIPE, check=True).stdout
    return {f"{row['deadline_ms']:g} {row['models']}": row["effective"] for row in json.loads(told)["rows"]}


def _print(
    found: dict[tuple[float, str], list[Asked]], timers: dict[float, float], predicted: dict[str, float]
) -> None:
    print(
        "| deadline ms | models | right % (standard error) | within + 5 ms % | a timer missed % | by the edge % |",
        end="",
    )
    print(" total: p50 ms | p99 ms | `simulate` % |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for (deadline_ms, way), rows in found.items():
        right = np.array([row.is_right for row in rows])
        answers = [row.answer for row in rows if row.answer is not None]
        total_ms = np.array([answer.stages_ms.total for answer in answers])
        within = (total_ms <= deadline_ms + SLACK_MS).sum() / len(rows)
        there_share = sum(answer.model.startswith("edge:") for answer in answers) / len(rows)
        error = math.sqrt(right.mean() * (1 - right.mean()) / len(rows))
        told = predicted.get(f"{deadline_ms:g} {way}")
        print(
            f"| {deadline_ms:g} | {way} | {100 * right.mean():.2f} ({100 * error:.2f}) | {100 * within:.2f} "
            f"| {100 * timers[deadline_ms]:.2f} | {100 * there_share:.1f} | {np.quantile(total_ms, 0.5):.1f} "
            f"| {np.quantile(total_ms, 0.99):.1f} | {'' if told is None else f'{100 * told:.2f}'} |"
        )


if __name__ == "__main__":
    main()
