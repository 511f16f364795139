"""A policy beside the best single model, live through the daemon. `python -m benchmarks.live FOLDER`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.servers import daemon
from jetsel.calibrate.record import find
from jetsel.client import Client
from jetsel.wire import Answer
from jetsel.zoo import STARTER, scan


def main() -> None:
    """Ask for every labelled photograph under each policy by turns, and print accuracy and time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("folder", type=Path, help="labelled photographs: a folder for each class")
    parser.add_argument(
        "--policies", default="single:xl,default", help="by commas (%(default)s); the first is the rival"
    )
    args = parser.parse_args()
    labels = scan([STARTER]).families["starter"].labels
    found = find(args.folder, labels, None, need_labels=True).photographs
    names = args.policies.split(",")
    right: dict[str, list[bool]] = {name: [] for name in names}
    work_ms: dict[str, list[float]] = {name: [] for name in names}
    model_ms: dict[str, list[float]] = {name: [] for name in names}
    print("# Live through the daemon\n")
    print("\n".join(conditions()), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="jetsel-") as folder,
        daemon(Path(folder)) as server,
        Client(server.address) as client,
    ):
        for photograph in found:
            data = photograph.path.read_bytes()
            for name in names:  # by turns, so that both see the same machine
                answer = client.classify(data, policy=None if name == "default" else name)
                right[name].append(labels.wnids.index(answer.wnid) == photograph.class_number)
                model_ms[name].append(chosen_ms(answer))
                work_ms[name].append(answer.stages_ms.total - answer.stages_ms.queue)
    print(f"\n{len(found)} photographs, one client, policies by turns\n")
    print(
        "| policy | right % | models, features and choice: mean ms | over the first's | decoding to answer: mean ms |"
    )
    print("|---|---:|---:|---:|---:|")
    for name in names:
        mean = np.mean(model_ms[name])
        print(
            f"| {name} | {100 * np.mean(right[name]):.2f} | {mean:.3f} | {mean / np.mean(model_ms[names[0]]):.2f} "
            f"| {np.mean(work_ms[name]):.3f} |"
        )


def chosen_ms(answer: Answer) -> float:
    """What choosing and the models took: what the recording's times hold, and decoding does not change."""
    stages = answer.stages_ms
    return sum(stages.inference) + stages.choice + (stages.features or 0.0)


if __name__ == "__main__":
    main()
