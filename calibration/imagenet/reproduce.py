"""Taylor et al. on ImageNet, fairly: `python -m calibration.imagenet.reproduce FIT TEST --models DIR`.

FIT and TEST: folders with a folder for each kind of photographs, and in it one for each class. DIR: all six rungs, from
`python -m calibration.imagenet.rungs`. Everything is fitted on FIT and judged on TEST, kinds apart; nothing is fitted
on TEST. Prints tables in Markdown: the rungs; how well each reader tells where the cheapest rung is right; the paper's
chain beside its own shares dealt at random; every policy beside the best mix of two single models in the same mean
time, with 95 % intervals of a paired bootstrap; and the claims on top-5, precision, recall, F1, cost and soundness.
Needs scikit-learn (`pip install 'jetsel[train]'`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.imagenet.calibrate import listed
from calibration.measures import macro
from calibration.papers.taylor.paper_chain import NAME as CHAIN_PAPER
from calibration.papers.taylor.paper_chain import PaperChainKind
from calibration.starter.calibrate import LIMITS, fitted, recorded
from jetsel import image
from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.judge.results import Judge
from jetsel.calibrate.record.cuts import CutImage
from jetsel.calibrate.record.recording import LoadedRecording, Recording
from jetsel.calibrate.record.replay import PolicyReplay, replay_all
from jetsel.features import PAPER_NAMES, PAPER_SEVEN, WORKING_PX
from jetsel.policies.registry import USUAL, catalogue
from jetsel.premodel import fit_scaling
from jetsel.zoo import Family, scan
from jetsel.zoo.pretrained import VARIANT_SIDES

SIZES_PX = {"64 x 64": WORKING_PX, "as they are": 50_000_000}
MAIN = "random227"
KINDS = (*USUAL, PaperChainKind())
POINTS = "cascade:", "chain:"  # the other points of a front are not shown


@dataclass(frozen=True, eq=False)
class Photographs:
    """One of the two sets: what was recorded of it, each photograph's kind, and its features at each size."""

    loaded: LoadedRecording
    kinds: NDArray[np.str_]
    features: Mapping[str, NDArray[np.float32]]
    features_ms: Mapping[str, float]

    def of(self, kind: str) -> Recording:
        """The photographs of one kind."""
        return self.loaded.recording.take(np.flatnonzero(self.kinds == kind))


def photographs(family: Family, folder: Path, work: Path) -> Photographs:
    """Record what is not recorded yet, and compute the features at every size."""
    loaded = recorded(family, listed(work / f"{folder.name}.csv", folder), work / f"{folder.name}-all.sqlite")
    paths = loaded.recording.paths
    found, times = {}, {}
    for name, size_px in SIZES_PX.items():
        with ThreadPoolExecutor() as pool:
            rows = list(pool.map(lambda path, px=size_px: _features(path, family.decode_px, px), paths))
        found[name], times[name] = np.stack([row for row, _ in rows]), float(np.mean([took for _, took in rows]))
    return Photographs(loaded, np.array([Path(path).parts[-3] for path in paths]), found, times)


def _features(path: str, decode_px: int, size_px: int) -> tuple[NDArray[np.float32], float]:
    """All features of a photograph at one size, and the milliseconds of processor time that they took."""
    data = image.read_file(Path(path), LIMITS)
    decoded = image.decode(data, LIMITS, decode_px)
    began = time.thread_time()
    values = CutImage(decoded, data, decoded).extract(LIMITS, size_px, PAPER_NAMES)
    return values, (time.thread_time() - began) * 1e3


def readers() -> dict[str, tuple[tuple[str, ...], Callable[[], object]]]:
    """Each reader of features: which it reads, and what makes it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    return {
        "5 neighbours, the paper's seven": (PAPER_SEVEN, lambda: KNeighborsClassifier(5)),
        "101 neighbours, all 29": (PAPER_NAMES, lambda: KNeighborsClassifier(101)),
        "logistic regression, all 29": (PAPER_NAMES, lambda: LogisticRegression(max_iter=5000)),
        "random forest, all 29": (
            PAPER_NAMES,
            lambda: RandomForestClassifier(300, min_samples_leaf=20, random_state=0),
        ),
    }


def told(fit: Photographs, test: Photographs, kind: str, calibration: Calibration) -> dict[str, list[float]]:
    """The area under the curve by which each reader tells where the cheapest rung is right, at each size."""
    from sklearn.metrics import roc_auc_score

    rows = test.kinds == kind
    known, due = fit.loaded.recording.right[:, 0], test.loaded.recording.right[rows, 0]
    found: dict[str, list[float]] = {}
    for name, (read, make) in readers().items():
        columns = [PAPER_NAMES.index(feature) for feature in read]
        for size in SIZES_PX:
            scaling = fit_scaling(fit.features[size][:, columns])
            reader = make()
            reader.fit(scaling.apply(fit.features[size][:, columns]), known)  # type: ignore[attr-defined]
            said = reader.predict_proba(scaling.apply(test.features[size][rows][:, columns]))[:, 1]  # type: ignore[attr-defined]
            found.setdefault(name, []).append(float(roc_auc_score(due, said)))
    cheapest = _of_models(test.loaded.recording, [test.loaded.recording.models[0]])
    confidence = cheapest.confidences(calibration.temperatures)[rows, 0]
    found["its own confidence, once it ran"] = [float(roc_auc_score(due, confidence))] * len(SIZES_PX)
    return found


def mixed(right: NDArray[np.bool_], costs_ms: NDArray[np.float64], mean_ms: float) -> NDArray[np.float64]:
    """How often each photograph is right, (n,), by the best mix of two models in this mean time."""
    models = range(len(costs_ms))
    alone = [right[:, a].astype(float) for a in models if costs_ms[a] <= mean_ms]
    dealt = [
        (costs_ms[b] - mean_ms) / (costs_ms[b] - costs_ms[a]) * (right[:, a].astype(float) - right[:, b]) + right[:, b]
        for a in models
        for b in models
        if costs_ms[a] <= mean_ms < costs_ms[b]
    ]
    best: NDArray[np.float64] = max(alone + dealt, key=np.mean)
    return best


def judged(
    kind: str,
    recording: Recording,
    calibration: Calibration,
    best: str,
    features_ms: Callable[[tuple[str, ...]], float],
) -> None:
    """Print every policy on one kind of photographs."""
    judge = Judge(recording, features_ms)
    right, costs_ms = recording.right, recording.costs("time")
    hindsight = max(recording.models, key=lambda model: right[:, recording.models.index(model)].mean())  # the cheapest
    print(f"\n{kind}: {len(recording.classes)} photographs; `{best}` is the rung that the fit photographs call best,")
    print(f"`{hindsight}` is the best in hindsight, on these photographs\n")
    columns = "top-1 % | top-5 % | precision, recall, F1 % | model ms | whole ms"
    print(f"| policy | {columns} | of {best}'s time | points beside it | of {hindsight}'s time | points beside it |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    lines = []
    for name, policy in catalogue(recording.models, calibration, KINDS).items():
        if name.startswith(POINTS):
            continue
        run = replay_all(policy, recording, range(len(right)), calibration.temperatures, recording.models[-1])
        result, correct = judge.result(name, run), (run.answered == recording.classes).astype(float)
        model_ms, whole_ms = float(run.models_ms.mean()), result.time_ms.mean
        scores = ", ".join(f"{100 * score:.1f}" for score in macro(recording.classes, run.answered))
        shares = f"{100 * result.top1:.2f} | {100 * result.top5:.2f} | {scores}"
        beside = []
        for model in (best, hindsight):
            gain, low, high = bootstrap(correct - right[:, recording.models.index(model)])
            beside.append(f"{model_ms / recording.costs_ms[model]:.2f} | {gain:+.2f} ({low:+.2f} to {high:+.2f})")
        print(f"| {name} | {shares} | {model_ms:.2f} | {whole_ms:.2f} | {' | '.join(beside)} |")
        lines.append((name, run, correct, whole_ms))
    print("\n| policy | beside the best mix of two models in its time, points | beside its shares dealt at random |")
    print("|---|---:|---:|")
    for name, run, correct, whole_ms in lines:
        if name.startswith("single:"):
            continue
        gain, low, high = bootstrap(correct - mixed(right, costs_ms, whole_ms))
        print(f"| {name} | {gain:+.2f} ({low:+.2f} to {high:+.2f}) | {_beside_shares(run, right, correct)} |")
    chain = next(run for name, run, _, _ in lines if name == CHAIN_PAPER)
    fails = ~(right & chain.ran).any(axis=1) & right.any(axis=1)
    print(f"\nsound: {CHAIN_PAPER} picks a model that fails while another succeeds on {100 * fails.mean():.1f} %")


def _beside_shares(run: PolicyReplay, right: NDArray[np.bool_], correct: NDArray[np.float64]) -> str:
    """The points over the same shares of models given to photographs at random, where one model ran for each."""
    if (run.ran.sum(axis=1) != 1).any():
        return "several models run"
    dealt = right @ run.ran.mean(axis=0)
    gain, low, high = bootstrap(correct - dealt)
    return f"{gain:+.2f} ({low:+.2f} to {high:+.2f}); dealt {100 * dealt.mean():.2f} %"


def main() -> None:
    """Record, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--models", type=Path, required=True, help="the folder with the six rungs")
    parser.add_argument("--work", type=Path, default=Path("build/imagenet"), help="recordings (%(default)s)")
    options = parser.parse_args()
    whole = scan([options.models]).families["imagenet"]
    fit, test = (photographs(whole, folder, options.work) for folder in (options.fit, options.test))
    kinds = sorted(set(test.kinds), key=lambda kind: kind != MAIN)
    print("\n| rung | ms | on the fit photographs, top-1 % |" + "".join(f" {kind} |" for kind in kinds))
    print("|---|---:|---:|" + "---:|" * len(kinds))
    for column, model in enumerate(fit.loaded.recording.models):
        shares = [100 * test.of(kind).right[:, column].mean() for kind in kinds]
        share = 100 * fit.loaded.recording.right[:, column].mean()
        cells = "".join(f" {share:.2f} |" for share in shares)
        print(f"| {model} | {fit.loaded.recording.costs_ms[model]:.2f} | {share:.2f} |{cells}")
    kept = [f"{variant}-{side_px}" for variant, side_px in VARIANT_SIDES]
    family = replace(whole, models=tuple(model for model in whole.models if model.manifest.name in kept))
    began = time.monotonic()
    found = fitted(family, _only(fit.loaded, kept), kinds=KINDS)
    print(f"training the choosers, and judging them in ten folds: {time.monotonic() - began:.0f} s, no GPU")
    calibration = found.calibration
    best = found.findings.comparison.best_single
    for kind in kinds:
        print(f"\nwhere `{kept[0]}` is right on {kind}: area under the curve, by the most pixels that features see\n")
        print("| reader | " + " | ".join(SIZES_PX) + " |\n|---|" + "---:|" * len(SIZES_PX))
        for name, areas in told(fit, test, kind, calibration).items():
            print(f"| {name} | " + " | ".join(f"{area:.3f}" for area in areas) + " |")
    print("\nall 29 features, ms of processor time: " + _listed(test.features_ms))
    share_ms = test.features_ms["64 x 64"] / len(PAPER_NAMES)
    for kind in kinds:
        judged(kind, _of_models(test.of(kind), kept), calibration, best, lambda names: share_ms * len(names))


def _listed(times_ms: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in times_ms.items())


def _only(loaded: LoadedRecording, models: Sequence[str]) -> LoadedRecording:
    return replace(loaded, recording=_of_models(loaded.recording, models))


def _of_models(recording: Recording, models: Sequence[str]) -> Recording:
    """The same of some of the models, the cheapest among them."""
    columns = [recording.models.index(model) for model in models]
    costs_ms = {model: recording.costs_ms[model] for model in models}
    return replace(recording, models=tuple(models), logits=recording.logits[columns], costs_ms=costs_ms)


if __name__ == "__main__":
    main()
