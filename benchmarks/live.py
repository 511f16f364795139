"""Policies beside a single model, live through the daemon. `python -m benchmarks.live FOLDER`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.conditions import conditions
from benchmarks.servers import fitted_daemon
from jetsel.calibrate.record.photographs import find_images
from jetsel.client import Client
from jetsel.wire import Answer
from jetsel.zoo import STARTER, scan

DRAWS, SEED = 4000, 2018


def main() -> None:
    """Ask for every labelled photograph under each policy by turns, and print accuracy and time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("folder", type=Path, help="labelled photographs: a folder for each class")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family (the starter family's)")
    parser.add_argument(
        "--policies", default="", help="by commas; the first is the rival (the best model, and default)"
    )
    args = parser.parse_args()
    (family,) = scan([args.models]).families.values()
    found = find_images(args.folder, family.labels, None, need_labels=True).photographs
    names = args.policies.split(",") if args.policies else [f"single:{family.models[-1].manifest.name}", "default"]
    answers: dict[str, list[Answer]] = {name: [] for name in names}
    print("# Live through the daemon\n")
    print("\n".join(conditions()), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="jetsel-") as folder,
        fitted_daemon(Path(folder), args.models) as server,
        Client(server.address) as client,
    ):
        for photograph in found:
            data = photograph.path.read_bytes()
            for name in names:  # by turns, so that all see the same machine
                answers[name].append(client.classify(data, policy=None if name == "default" else name))
    due = [family.labels.wnids[photograph.class_number or 0] for photograph in found]
    print(f"\n{len(found)} photographs, one client, policies by turns\n")
    columns = (
        "top-1 % | top-5 % | models, features and choice: mean ms | over the first's | decoding to answer: mean ms"
    )
    print(f"| policy | {columns} | top-1 beside the first, points (95 %) |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    first = names[0]
    for name in names:
        right = right_of(answers[name], due)
        mean_ms = np.mean([chosen_ms(answer) for answer in answers[name]])
        rival_ms = np.mean([chosen_ms(answer) for answer in answers[first]])
        whole_ms = np.mean([answer.stages_ms.total - answer.stages_ms.queue for answer in answers[name]])
        five = np.mean([wnid in {one.wnid for one in a.top_k} for a, wnid in zip(answers[name], due, strict=True)])
        gain, low, high = bootstrap(right - right_of(answers[first], due))
        print(
            f"| {name} | {100 * right.mean():.2f} | {100 * five:.2f} | {mean_ms:.3f} | {mean_ms / rival_ms:.2f} "
            f"| {whole_ms:.3f} | {gain:+.2f} ({low:+.2f} to {high:+.2f}) |"
        )


def right_of(answers: list[Answer], due: list[str]) -> NDArray[np.float64]:
    """Which were right, (n,), as 1 and 0."""
    return np.array([answer.wnid == wnid for answer, wnid in zip(answers, due, strict=True)], float)


def bootstrap(each: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean of (n,) paired differences and its 95 % interval, photographs drawn with replacement; in points."""
    draw = np.random.default_rng(SEED)
    means = np.array([each[draw.integers(0, len(each), len(each))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [0.025, 0.975])
    return 100 * float(each.mean()), 100 * float(low), 100 * float(high)


def chosen_ms(answer: Answer) -> float:
    """What choosing and the models took, their inputs included: what a recording's times hold."""
    stages = answer.stages_ms
    return sum(stages.inference) + stages.choice + (stages.features or 0.0) + (stages.input or 0.0)


if __name__ == "__main__":
    main()
