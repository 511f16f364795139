"""Figures 9 to 11 of Taylor et al. from a recording: `python -m calibration.papers.premodels RECORDING`.

RECORDING is a file that `jetsel calibrate --recording` or `calibration.starter.calibrate` wrote, of the starter family.
Prints tables in Markdown: the premodel built with other techniques (Figure 9), one technique for each level of the
hierarchy (Figure 10), the chain with one link, two links and so on (Figure 11), and how well all features together tell
the cheapest model's right answers from its wrong ones, by several readers. All are judged on held-out photographs, in
the ten folds of `jetsel calibrate`; in doubt the most expensive model answers. Needs scikit-learn
(`pip install 'jetsel[calibrate]'`), and torch for `--network`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.papers.network import choose_by_network, small_pictures
from calibration.papers.techniques import Alternative, compare_techniques
from jetsel import image
from jetsel.calibrate.calibrating import FOLDS, SEED
from jetsel.calibrate.folds import assign_folds
from jetsel.calibrate.from_files import FeatureClock, decoded
from jetsel.calibrate.neighbourhood import Neighbourhood, nearest_in_other_folds
from jetsel.calibrate.planning import Planned, make_plan
from jetsel.calibrate.record import load
from jetsel.calibrate.recording import Recording
from jetsel.features import WORKING_PX
from jetsel.policies.chain import PAPER_K
from jetsel.policies.kind import Plan
from jetsel.premodel import fit_scaling, optimum_votes, select_models
from jetsel.zoo import STARTER, scan

LIMITS = image.Limits(max_bytes=16_000_000, max_pixels=50_000_000)


class Choices(NamedTuple):
    """What the chain chooses.

    yes: (n, links), each link's vote. column: (n,), the model that answers. right: (n,), whether it is right.
    """

    yes: NDArray[np.bool_]
    column: NDArray[np.int64]
    right: NDArray[np.bool_]


class Study:
    """One recording, its folds and the plan of its chain, under top-1."""

    def __init__(self, recording: Recording, decode_px: int, features_ms: float) -> None:
        groups = np.arange(len(recording.classes)) if recording.groups is None else recording.groups
        self.recording = recording
        self.fold_of = assign_folds(groups, FOLDS, SEED)
        self.clock = FeatureClock(decoded(recording.paths, decode_px, LIMITS), WORKING_PX, LIMITS, features_ms)
        self.planned: Planned = make_plan(recording, self.fold_of, "top1", 0.5, self.clock)
        self.plan: Plan = self.planned.plan
        columns = [recording.feature_names.index(name) for name in self.plan.features]
        self.features = recording.features[:, columns]
        self.near: Neighbourhood = nearest_in_other_folds(self.features, self.fold_of, self.plan.k)
        self.near_paper: Neighbourhood = nearest_in_other_folds(self.features, self.fold_of, PAPER_K)
        self.right, self.costs_ms = recording.right("top1"), recording.costs("time")

    def links(self, theta_points: float) -> list[int]:
        """The chain's columns in the order of Algorithm 1."""
        links, _ = select_models(self.right, self.costs_ms, self.recording.models, theta_points)
        return [self.recording.models.index(model) for model in links]

    def choices(self, near: Neighbourhood, columns: list[int]) -> Choices:
        """What a chain of these columns chooses by its neighbours; in doubt the last model of all answers."""
        votes = optimum_votes(self.right[:, columns], self.costs_ms[columns])
        yes = votes[near.near].sum(axis=1) * 2 > near.near.shape[1]
        column = np.where(yes.any(axis=1), np.array(columns)[yes.argmax(axis=1)], len(self.costs_ms) - 1)
        return Choices(yes, column, self.right[np.arange(len(column)), column])

    def figures_9_and_10(self, network: bool) -> list[Alternative]:
        """Every technique alone, then every mix by level, then the network where it is asked for."""
        columns = self.links(self.plan.theta_points)
        last = len(self.costs_ms) - 1
        if last not in columns:
            columns.append(last)
        fallback = columns.index(last)
        votes = optimum_votes(self.right[:, columns], self.costs_ms[columns].tolist())
        right, costs_ms = self.right[:, columns], self.costs_ms[columns]
        scaled = fit_scaling(self.features).apply(self.features)
        found = compare_techniques(
            scaled, votes, right, costs_ms, self.fold_of, PAPER_K, self.plan.features_ms, fallback
        )
        if network:
            optimum = np.where(votes.any(axis=1), votes.argmax(axis=1), fallback)
            pictures = small_pictures(self.recording.paths, LIMITS)
            chosen, choice_ms = choose_by_network(pictures, optimum, len(columns), self.fold_of)
            share = float(right[np.arange(len(right)), chosen].mean())
            found.append(Alternative("CNN", share, float(costs_ms[chosen].mean()) + choice_ms, choice_ms))
        return found

    def figure_11(self) -> list[tuple[int, float, float]]:
        """For each number of links, without theta: the share right and the mean time of models and features in ms."""
        columns = self.links(-1.0)
        rows = []
        for number in range(1, len(columns) + 1):
            chosen = self.choices(self.near_paper, columns[:number])
            time_ms = float(self.costs_ms[chosen.column].mean()) + self.plan.features_ms
            rows.append((number, float(chosen.right.mean()), time_ms))
        return rows

    def told_by_features(self) -> dict[str, float]:
        """The area under the curve by which all features tell where the cheapest model is right: reader -> AUC."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import PredefinedSplit, cross_val_predict
        from sklearn.neighbors import KNeighborsClassifier

        readers = {
            "101 neighbours": KNeighborsClassifier(101),
            "logistic regression": LogisticRegression(max_iter=2000),
            "random forest": RandomForestClassifier(300, min_samples_leaf=20, random_state=0),
        }
        scaled = fit_scaling(self.recording.features).apply(self.recording.features)
        cheapest = self.right[:, 0]
        folds = PredefinedSplit(self.fold_of)
        return {
            name: float(
                roc_auc_score(
                    cheapest, cross_val_predict(reader, scaled, cheapest, cv=folds, method="predict_proba")[:, 1]
                )
            )
            for name, reader in readers.items()
        }


def show(title: str, found: list[Alternative]) -> None:
    """Print one of the first two tables, the best first."""
    print(f"\n{title}\n\n| premodel | top-1 % | mean ms | features and choice, ms |\n|---|---:|---:|---:|")
    for one in sorted(found, key=lambda one: -one.accuracy):
        print(f"| {one.name} | {100 * one.accuracy:.1f} | {one.time_ms:.2f} | {one.choice_ms:.2f} |")


def main() -> None:
    """Read the recording and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--network", action="store_true", help="with the convolutional premodel: needs torch")
    options = parser.parse_args()
    family = scan([STARTER]).families["starter"]
    loaded = load(options.recording, family)
    study = Study(loaded.recording, family.decode_px, loaded.times.features_ms)
    print(f"{len(study.right)} photographs; k = {PAPER_K}, as in the paper; features: {', '.join(study.plan.features)}")
    found = study.figures_9_and_10(options.network)
    show("Figure 9: one technique", [one for one in found if "." not in one.name])
    show("Figure 10: one technique for each level", [one for one in found if "." in one.name])
    print("\nFigure 11: links of the chain\n\n| links | top-1 % | mean ms |\n|---:|---:|---:|")
    for number, share, time_ms in study.figure_11():
        print(f"| {number} | {100 * share:.1f} | {time_ms:.2f} |")
    print("\nWhere the cheapest model is right, told by all features\n\n| reader | AUC |\n|---|---:|")
    for name, area in study.told_by_features().items():
        print(f"| {name} | {area:.3f} |")


if __name__ == "__main__":
    main()
