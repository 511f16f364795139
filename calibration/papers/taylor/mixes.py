"""Where images are of several kinds: `python -m calibration.papers.taylor.mixes FIT TEST --family NAME`.

FIT and TEST are recordings, of several kinds of images or of one. Everything is fitted on FIT, and every operating
point is chosen by its ten folds; TEST fits nothing. The kinds of images are known to the table alone, and to the row of
an oracle that is told them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.papers.tables import table, written
from calibration.papers.taylor.paper_chain import NAME as VOTES
from calibration.papers.taylor.paper_chain import PaperChainKind
from calibration.starter.calibrate import LIMITS, fitted, of_models
from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.fit.features import FeatureClock, decode_sample
from jetsel.calibrate.fit.goal import paired_difference
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.judge.words import premodel_in_words
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.recording import LoadedRecording, Recording
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.chain import NAME as CHAIN
from jetsel.policies.registry import KINDS, USUAL, catalogue
from jetsel.premodel.cascades import replay_cascade as judge_cascade
from jetsel.premodel.cascades import tried_cascades
from jetsel.premodel.paths import PRICES
from jetsel.zoo import STARTER, Family, scan
from jetsel.zoo.pretrained import INT8

Kinds = Mapping[str, NDArray[np.bool_]]


def day_and_night(path: str) -> str:
    """Return the kind of an image that calibration.starter.night wrote."""
    return "night" if Path(path).stem.endswith("-night") else "day"


def two_sizes(path: str) -> str:
    """Return the kind of an image of ImageNet: Tiny ImageNet's are 64 pixels wide."""
    return "small" if Path(path).suffix == ".JPEG" else "photographs"


KIND_OF: dict[str, Callable[[str], str]] = {"starter": day_and_night, "imagenet": two_sizes}


@dataclass(frozen=True, eq=False)
class Way:
    """What one way to choose gives on the test images: (n,) whether it is right, and (n,) ms."""

    text: str
    right: NDArray[np.bool_]
    time_ms: NDArray[np.float64]


def judged(text: str, name: str, calibration: Calibration, judge: Judge) -> Way:
    """Replay one policy of a calibration on the judge's recording."""
    recording = judge.recording
    policy = catalogue(recording.models, calibration, (*KINDS, PaperChainKind()))[name]
    rows = range(len(recording.classes))
    run = replay_all(policy, recording, rows, calibration.temperatures, recording.models[-1])
    return Way(f"{text}: {name}", run.answered == recording.classes, judge.outcomes(run).time_ms)


def best_within(calibration: Calibration, prefix: str, most_ms: float) -> str:
    """Return the operating point of the best accuracy in folds within this mean time there; the cheapest if none is."""
    points = {name: one for name, one in calibration.figures.items() if name.split(":")[0] == prefix}
    within = {name: one for name, one in points.items() if one["mean_ms"] <= most_ms}
    if not within:
        return min(points, key=lambda name: points[name]["mean_ms"])
    return max(within, key=lambda name: (within[name]["top1"], -within[name]["mean_ms"]))


def told(
    fit: Recording, test: Recording, temperatures: Mapping[str, float], kinds: tuple[Kinds, Kinds], most_ms: float
) -> Way:
    """Return the oracle of kinds: for each kind the cascade that is best on its own images, all at one price.

    kinds: of FIT and TEST. most_ms: what the mean time on FIT may be at most.
    """
    known, others = fit.table(temperatures).outputs, test.table(temperatures).outputs
    cascades = tried_cascades(known).cascades
    gives = [judge_cascade(one, known) for one in cascades]
    right = np.stack([one for one, _ in gives])
    cost = np.stack([ran @ known.costs for _, ran in gives])
    means = {kind: (right[:, rows].mean(axis=1), cost[:, rows].mean(axis=1)) for kind, rows in kinds[0].items()}
    share = {kind: float(rows.mean()) for kind, rows in kinds[0].items()}
    best: tuple[float, dict[str, int]] = (-1.0, {})
    for price in np.geomspace(PRICES[0] / 10, PRICES[-1], 200) / known.costs.max():
        chosen = {kind: int((accuracy - price * ms).argmax()) for kind, (accuracy, ms) in means.items()}
        total_ms = sum(share[kind] * means[kind][1][one] for kind, one in chosen.items())
        accuracy = sum(share[kind] * means[kind][0][one] for kind, one in chosen.items())
        if total_ms <= most_ms and accuracy > best[0]:
            best = accuracy, chosen
    found, time_ms = np.zeros(len(others.classes), bool), np.zeros(len(others.classes))
    for kind, one in best[1].items():
        correct, ran = judge_cascade(cascades[one], others)
        rows = kinds[1][kind]
        found[rows], time_ms[rows] = correct[rows], (ran @ others.costs)[rows]
    return Way("oracle of kinds: a cascade for each", found, time_ms)


def kinds_of(recording: Recording, kind_of: Callable[[str], str]) -> Kinds:
    """Return which images are of each kind."""
    names = np.array([kind_of(path) for path in recording.paths])
    return {str(name): names == name for name in np.unique(names)}


def together(parts: Sequence[Recording]) -> Recording:
    """Return several recordings by the same models as one, at the times of the first."""
    first = parts[0]
    return replace(
        first,
        logits=np.concatenate([part.logits[[part.models.index(name) for name in first.models]] for part in parts], 1),
        classes=np.concatenate([part.classes for part in parts]),
        features=np.concatenate([part.features for part in parts]),
        embeddings=None,
        groups=None,
        paths=tuple(path for part in parts for path in part.paths),
    )


def ways(fit: LoadedRecording, test: Recording, family: Family, kind_of: Callable[[str], str]) -> tuple[list[Way], str]:
    """Return every way of the table, on TEST, and what calibration says of the premodel."""
    both = (*USUAL, PaperChainKind())
    found = fitted(family, fit, kinds=both)
    alone = fitted(family, fit, kinds=[kind for kind in USUAL if kind.name == "cascade"])
    # A chain that adds nothing is not offered, but the table has it.
    shown = found if CHAIN in found.calibration.parts else fitted(family, fit, kinds=both, policy=CHAIN)
    calibration, figures = shown.calibration, shown.calibration.figures
    clock = FeatureClock(
        decode_sample(fit.recording.paths, family.decode_px, LIMITS),
        fit.identity.features_px,
        LIMITS,
        fit.times.features_ms,
    )
    judge = Judge(of_models(replace(test, costs_ms=fit.recording.costs_ms), fit.recording.models), clock)
    top = best_within(calibration, "cascade", np.inf)
    singles = {name: one for name, one in figures.items() if name.startswith("single:")}
    best = max(singles, key=lambda name: singles[name]["top1"])
    top_ms = figures[top]["mean_ms"]
    rows = [
        judged("most expensive model", f"single:{judge.recording.models[-1]}", calibration, judge),
        judged("best single model", best, calibration, judge),
        judged("chain of votes, as published", VOTES, calibration, judge),
        judged("most accurate cascade", top, calibration, judge),
    ]
    if len(kinds_of(judge.recording, kind_of)) > 1:
        rows.append(judged("chain of paths in its time", best_within(calibration, "chain", top_ms), calibration, judge))
        for part in (0.75, 0.5, 0.25):
            for prefix in ("cascade", "chain"):
                name = best_within(calibration, prefix, part * top_ms)
                rows.append(judged(f"{prefix} in {part:.0%} of that time", name, calibration, judge))
    else:
        rows.append(judged("chain of paths, offered or not", CHAIN, calibration, judge))
        name = best_within(calibration, "cascade", figures[CHAIN]["mean_ms"])
        rows.append(judged("cascade in the time of that chain", name, calibration, judge))
    known = fit.recording, judge.recording
    kinds = kinds_of(known[0], kind_of), kinds_of(known[1], kind_of)
    if len(kinds[1]) > 1:
        rows.append(told(*known, calibration.temperatures, kinds, top_ms))
    rows.append(judged("default", found.calibration.default_policy, found.calibration, judge))
    rows.append(
        judged("default if there are cascades alone", alone.calibration.default_policy, alone.calibration, judge)
    )
    chain = found.findings.comparison.chain
    return rows, "" if chain is None else premodel_in_words(chain)


def compared(rows: Sequence[Way], kinds: Kinds, beside: Way) -> list[str]:
    """Return the rows of the table: all images and each kind, beside one way, with the paired 95 % interval."""
    lines = []
    for way in rows:
        points, error = paired_difference(way.right, beside.right)
        cells = [way.text, f"{100 * way.right.mean():.1f}", f"{way.time_ms.mean():.2f}"]
        cells += [f"{100 * way.right[of].mean():.1f} in {way.time_ms[of].mean():.2f}" for of in kinds.values()]
        low, high = points - 1.96 * error, points + 1.96 * error
        lines.append(" | ".join([*cells, f"{100 * points:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"]))
    return lines


def main() -> None:
    """Fit, judge and print."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path, nargs="+", help="several are judged as one")
    parser.add_argument("--family", choices=sorted(KIND_OF), required=True)
    parser.add_argument("--models", type=Path, default=STARTER, help="folder of the family (the starter's)")
    options = parser.parse_args()
    family = scan([options.models]).families[options.family]
    names = [model.manifest.name for model in family.models]
    served = [name for name in names if name.endswith(INT8)] or names  # of two precisions, the one that is faster here
    fit = load(options.fit, family, served)
    test = together([load(file, family, served).recording for file in options.test])
    kind_of = KIND_OF[options.family]
    rows, premodel = ways(fit, test, family, kind_of)
    kinds = kinds_of(test, kind_of)
    counts = ", ".join(f"{int(of.sum()):,} {kind}" for kind, of in kinds.items())
    several = len(kinds) > 1
    shown = kinds if several else {}
    rival = "most accurate cascade" if several else "cascade in the time of that chain"
    columns = " | ".join(["way", "right %", "ms", *(f"{kind} %, ms" for kind in shown), f"beside the {rival}"])
    beside = next(way for way in rows if way.text.startswith(rival))
    title = f"{options.family}: {len(fit.recording.classes):,} to fit on, {counts} to judge on"
    title = f"Images of {'several kinds' if several else 'one kind'}, {title}"
    name = f"taylor-{'mixes' if several else 'clean'}-{options.family}"
    written(name, table(title, columns, compared(rows, shown, beside)) + f"\n{premodel}\n")


if __name__ == "__main__":
    main()
