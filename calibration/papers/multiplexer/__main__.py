"""Eshratifar and Pedram (2020) beside what is measured: `python -m calibration.papers.multiplexer [--part NAME]`.

Parts: identities, the paper's own sums; starter and imagenet, a multiplexer for the models as they are; joint and
joint-without, for three models of the starter family trained on together, with and without the contrastive loss; and
pictures, their embeddings by t-SNE. Everything is fitted on the photographs of --fit and judged on others. What is done
is kept in --work, so that the same command goes on. Needs pip install 'jetsel[export,train,calibrate]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from calibration.imagenet.calibrate import listed
from calibration.papers.multiplexer.identities import identities
from calibration.papers.multiplexer.local import PAPER, figure_1, local
from calibration.papers.multiplexer.policies import (
    as_in_the_paper,
    at_equal_time,
    beside_the_premodel,
    break_even,
)
from calibration.papers.multiplexer.subject import Subject, with_times_of
from calibration.papers.multiplexer.together import accuracies, embeddings, pictures
from calibration.papers.multiplexer.told import areas
from calibration.papers.tables import table

JOINT = ("xs", "s", "m")
CONTRAST = 0.3
POLICIES = (
    "mean ms at most | policy | top-1 % | ms, the multiplexer's in | beside the cascade, points | beside a mix of two"
)


def judged(subject: Subject, models: Path | None) -> str:
    """Train by both losses, and judge: all tables of one family."""
    subject.prepare(models)
    said, shown, paper = {}, [], []
    for loss in ("ensemble", "right"):  # the last one stays
        found = subject.trained(loss)
        names = found.multiplexer.manifest.multiplexes.models
        test = subject.recorded(subject.test, names, f"test-{loss}")
        said = {f"multiplexer, loss {loss}": test.multiplexer.chances[:, 0], **said}
        for one, area in zip(found.made.tried, found.areas, strict=True):
            taken = "taken" if one.cut == found.made.cut else ""
            shown.append(f"{loss} | {100 * one.cut.share:.0f} % | {one.each.mean():.4f} | {area:.3f} | {taken}")
        paper += [f"{loss} | {row}" for row in as_in_the_paper(test)]
    fit = subject.recorded(subject.fit, names, "fit")
    test = with_times_of(fit, test)
    title = f"{subject.family}{', ' + subject.folder.name if subject.joint else ''}: "
    matrix = f"right, and not | {' | '.join(test.models)}"
    parts = [
        table(
            f"{title}where to cut, {len(fit.classes)} photographs, held out",
            "loss | of the cheapest | loss | AUC | ",
            shown,
        ),
        table(
            f"{title}where {test.models[0]} is right, {len(test.classes)} others",
            "reader | AUC | first less this",
            areas(fit, test, said),
        ),
        table(f"{title}policies at equal time", POLICIES, at_equal_time(fit, test)),
        table(
            f"{title}the premodel of Taylor et al., its features for nothing",
            "policy | top-1 % | ms | the premodel beside it, points",
            beside_the_premodel(fit, test),
        ),
        table(f"{title}the paper's settings", "loss | rule | top-1 % | ms | called, %", paper),
        table(
            f"{title}break-even",
            "mean ms at most | cascade | first ms | goes on | limit ms | multiplexer ms | ",
            break_even(fit),
        ),
        table(
            f"{title}what stays at the edge's accuracy (paper: {PAPER:g} %)",
            "here | reader | stays | top-1 % | beside the edge, points",
            local(fit, test),
        ),
        table(f"{title}Figure 1, %", matrix, figure_1(test)),
    ]
    return "\n".join(parts)


def main() -> None:
    """Print every part, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("identities", "starter", "imagenet", "joint", "joint-without", "pictures"))
    parser.add_argument("--work", type=Path, default=Path("build/multiplexer"), help="what is done (%(default)s)")
    parser.add_argument("--starter", type=Path, nargs=3, metavar=("TRAIN", "FIT", "TEST"), help="class/photograph")
    parser.add_argument(
        "--imagenet", type=Path, nargs=3, metavar=("MODELS", "FIT", "TEST"), help="kind/class/photograph"
    )
    parser.add_argument("--threads", type=int, default=1, help="the same each time (%(default)s)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    for name, part in _parts(options).items():
        if options.part in (None, name):
            kept = options.work / f"{name}.md"
            if not kept.exists():
                kept.write_text(part(), encoding="utf-8")
            print(kept.read_text(encoding="utf-8"))


def _parts(options: argparse.Namespace) -> dict[str, Callable[[], str]]:
    work, parts = options.work, {"identities": identities}
    if options.starter is not None:
        train, fit, test = options.starter
        parts["starter"] = partial(judged, Subject("starter", work / "starter", fit, test), None)
        together = {
            name: Subject("starter", work / name, fit, test, JOINT, train, contrast)
            for name, contrast in (("joint", CONTRAST), ("joint-without", 0.0))
        }
        for name, subject in together.items():
            parts[name] = lambda subject=subject: judged(subject, None) + accuracies(subject)
        parts["pictures"] = lambda: pictures({name: embeddings(one) for name, one in together.items()}, work)
    if options.imagenet is not None:
        models, *folders = options.imagenet
        lists = [listed(folder, work / f"{folder.name}.csv") for folder in folders]
        parts["imagenet"] = partial(judged, Subject("imagenet", work / "imagenet", *lists), models)
    return parts


if __name__ == "__main__":
    main()
