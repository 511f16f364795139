"""How the chain's premodel is fitted to a recording: `python -m calibration.papers.chain RECORDING [--models DIR]`.

RECORDING is a file that `jetsel calibrate --recording` or `calibration.starter.calibrate` wrote, of the family in DIR
(default: the starter's). Prints, of Taylor et al. under top-1, tables in Markdown: the optimal models and Algorithm 1
(Figures 5 and 6), the features dropped for their correlation (Table 3), lift without each feature and with fewer of
them (Figures 12 and 13), the premodel with each number of neighbours, how often each link is right (section 5.2), and
how often choices are right by the distance of the neighbours (section 6). All are judged on held-out photographs, in
the ten folds of `jetsel calibrate`. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from calibration.papers.premodels import Study
from jetsel.calibrate.fit.soundness import fit_soundness
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.record import load
from jetsel.premodel import optimum_votes, select_models
from jetsel.zoo import STARTER, scan


def show(title: str, columns: str, rows: Iterable[Iterable[object]]) -> None:
    """Print a table; columns: their names, with | between them."""
    print(f"\n{title}\n\n| {columns} |\n|{'---|' * len(columns.split('|'))}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


def show_features(study: Study) -> None:
    """Print Table 3 and Figures 12 and 13."""
    planned = study.planned
    selection, judged = planned.selection, planned.judgement
    alike = [(kept, name, r) for kept, gone in planned.dropped.items() for name, r in gone]
    rows = ((kept, name, "constant" if r is None else f"{r:.2f}") for kept, name, r in alike)
    show("Table 3: dropped for their correlation", "kept | dropped | absolute correlation", rows)
    ranked = sorted(selection.importance.items(), key=lambda item: -item[1])
    lost = ((name, f"{points:+.1f}", "yes" if name in selection.features else "no") for name, points in ranked)
    show("Figure 12: points of lift lost without each feature", "feature | points | stays", lost)
    fewer = []
    for number, k, points in selection.counts:
        gone = selection.order[: len(planned.kept) - number]
        left = tuple(name for name in planned.kept if name not in gone)
        fewer.append((number, k, f"{points:+.1f}", f"{study.clock(left):.3f}"))
    show("Figure 13: how many features", "features | best k | points of lift | ms of extracting", fewer)
    print(
        f"\nOn images that had no part in the selection: {100 * judged.lift:+.2f} points of lift (standard error "
        f"{100 * judged.error:.2f}); the features cost {100 * judged.cost:.2f}; doubt on {100 * judged.doubt:.0f} %: "
        f"the premodel {'adds accuracy' if judged.adds else 'adds nothing here'}."
    )


def show_models(study: Study) -> None:
    """Print how often each model is the optimum (Figure 5), and what each step of Algorithm 1 adds (Figure 6)."""
    recording = study.recording
    shares = optimum_votes(study.right, study.costs_ms).mean(axis=0)
    rows = ((model, f"{100 * share:.1f}") for model, share in zip(recording.models, shares, strict=True))
    show("Figure 5: the cheapest that is right", "model | of the photographs, %", rows)
    _, steps = select_models(study.right, study.costs_ms, recording.models, study.plan.theta_points)
    added = ((one.added, one.failing, f"{one.gain_points:+.1f}", "yes" if one.kept else "no") for one in steps)
    show("Figure 6: what the next model adds", "model | where all before it fail | points gained | stays", added)


def show_chain(study: Study) -> None:
    """Print what k, the links and the distance are worth, and what tells the cheapest model's right answers."""
    from sklearn.metrics import roc_auc_score

    recording, right, near, columns = study.recording, study.right, study.near, study.links(study.plan.theta_points)
    by_k = ((k, f"{points:+.1f}") for k, points in study.planned.selection.by_k.items())
    show(f"Neighbours: {study.plan.k} are chosen", "k | points of lift", by_k)
    chosen = study.choices(near, columns)
    truth = optimum_votes(right[:, columns], study.costs_ms[columns].tolist())
    agrees = (chosen.yes == truth).mean(axis=0)
    commoner = np.maximum(truth.mean(axis=0), 1 - truth.mean(axis=0))
    links = [
        (recording.models[column], f"{100 * own:.1f}", f"{100 * base:.1f}")
        for column, own, base in zip(columns, agrees, commoner, strict=True)
    ]
    show("Links (theirs: 95.8, 80.1 and 72.3 %)", "link | right yes or no, % | the commoner of both, %", links)
    optimum = np.where(right, study.costs_ms, np.inf).argmin(axis=1)
    some = right.any(axis=1)
    print(f"\nThe optimum is named on {100 * (chosen.column == optimum)[some].mean():.1f} % (theirs: 95.6 %).")
    sound = fit_soundness(near.distance, chosen.right, right[:, -1])
    steps = ((f"{end:.3f}", f"{100 * share:.1f}") for end, share in sound.steps)
    show(f"Distance: in doubt beyond {sound.limit}", "distance up to which | right choices, %", steps)
    confidence = recording.confidences("top1", fit_temperatures(recording))[:, 0]
    told = {"neighbours": right[near.near, 0].mean(axis=1), "its own confidence": confidence}
    areas = ((name, f"{roc_auc_score(right[:, 0], scores):.3f}") for name, scores in told.items())
    show("Where the cheapest model is right", "told by | AUC", areas)


def main() -> None:
    """Read the recording and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--models", type=Path, default=STARTER, help="folder with the family (default: the starter's)")
    options = parser.parse_args()
    (family,) = scan([options.models]).families.values()
    loaded = load(options.recording, family)
    study = Study(loaded.recording, family.decode_px, loaded.times.features_ms)
    print(f"{len(study.right)} photographs; features: {', '.join(study.plan.features)}")
    show_features(study)
    show_models(study)
    show_chain(study)


if __name__ == "__main__":
    main()
