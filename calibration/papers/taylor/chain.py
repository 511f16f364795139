"""How the chain is fitted: Table 3, Figures 6, 7, 12 and 13, its links (section 5.2), k and distance (section 6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibration.papers.tables import table
from calibration.papers.taylor.algorithm1 import optimum_votes, select_models
from calibration.papers.taylor.distances import chosen_right, elected
from calibration.papers.taylor.folds import nearest_in_other_folds
from calibration.papers.taylor.paper_chain import PAPER_K
from calibration.papers.taylor.selection import lift_of
from calibration.papers.taylor.soundness import fit_soundness
from calibration.papers.taylor.study import Study
from jetsel.features import PAPER_SEVEN


def fitting(study: Study) -> Iterator[str]:
    """Give the tables one after the other."""
    planned = study.planned
    selection, judged = planned.selection, planned.judgement
    counted = f"{study.family.name}, {len(study.right)} images"
    yield f"{counted}; selected: {', '.join(study.plan.features)}; k = {study.plan.k}\n"
    alike = [(kept, name, r) for kept, gone in planned.dropped.items() for name, r in gone]
    rows = [f"{kept} | {name} | {'constant' if r is None else format(r, '.2f')}" for kept, name, r in alike]
    yield table(f"{counted}: Table 3, dropped for their correlation", "kept | dropped | absolute correlation", rows)
    yield table(
        f"{counted}: Figure 7, each of the paper's seven features left out, k = 5",
        "without | points of accuracy lost | points of lift lost",
        _figure_7(study),
    )
    ranked = sorted(selection.importance.items(), key=lambda item: -item[1])
    lost = [f"{name} | {points:+.1f} | {'yes' if name in selection.features else 'no'}" for name, points in ranked]
    yield table(f"{counted}: Figure 12, each left out of all", "without | points of lift lost | selected", lost)
    fewer = []
    for number, k, points in selection.counts:
        gone = selection.order[: len(planned.kept) - number]
        left = tuple(name for name in planned.kept if name not in gone)
        fewer.append(f"{number} | {k} | {points:+.1f} | {study.clock(left):.2f}")
    columns = "features | best k | points of lift, on the images that select | ms of extracting"
    yield table(f"{counted}: Figure 13, how many features", columns, fewer)
    judgement = (
        f"{100 * judged.lift:+.2f} ({100 * judged.error:.2f}) | {100 * judged.cost:.2f} | {100 * judged.doubt:.0f} % | "
        + ("adds accuracy" if judged.adds else "adds nothing here")
    )
    columns = "points of lift (standard error) | the features cost, points | in doubt | the premodel"
    yield table(f"{counted}: on images that had no part in the selection", columns, [judgement])
    _, steps = select_models(study.right, study.costs_ms, study.recording.models, study.plan.theta_points)
    added = [f"{one.added} | {one.failing} | {one.gain_points:+.1f} | {'yes' if one.kept else 'no'}" for one in steps]
    columns = "model | images that all before it fail | points gained | stays"
    yield table(f"{counted}: Figure 6, what the next model adds", columns, added)
    yield from _links(study, counted)


def _figure_7(study: Study) -> list[str]:
    """Return a row for each of the paper's features: what the paper's chain loses without it."""
    columns = study.links(-1.0)[:3]
    votes = optimum_votes(study.right[:, columns], study.costs_ms[columns])
    order = [*columns, len(study.costs_ms) - 1]

    def scores(names: tuple[str, ...]) -> tuple[float, float]:
        near = nearest_in_other_folds(study.columns(names), study.fold_of, PAPER_K).near
        link = elected(near, votes)
        right = study.right[:, order]
        accuracy = chosen_right(near, votes, right, len(columns)).mean()
        return float(accuracy), float(lift_of(np.where(link < 0, len(columns), link), right).mean())

    whole = scores(PAPER_SEVEN)
    rows = []
    for gone in PAPER_SEVEN:
        less = scores(tuple(name for name in PAPER_SEVEN if name != gone))
        rows.append(f"{gone} | {100 * (whole[0] - less[0]):+.2f} | {100 * (whole[1] - less[1]):+.2f}")
    return [*rows, f"none: all seven have | {100 * whole[0]:.2f} % | {100 * whole[1]:+.2f}"]


def _links(study: Study, counted: str) -> Iterator[str]:
    """Give what k, the links and the distance are worth."""
    recording, right, columns = study.recording, study.right, study.links(study.plan.theta_points)
    near = nearest_in_other_folds(study.features, study.fold_of, study.plan.k)
    by_k = [f"{k} | {points:+.1f}" for k, points in study.planned.selection.by_k.items()]
    yield table(f"{counted}: neighbours, {study.plan.k} are chosen", "k | points of lift", by_k)
    votes = optimum_votes(right[:, columns], study.costs_ms[columns])
    yes = votes[near.near].sum(axis=1) * 2 > study.plan.k
    agrees = (yes == votes).mean(axis=0)
    commoner = np.maximum(votes.mean(axis=0), 1 - votes.mean(axis=0))
    links = [
        f"{recording.models[column]} | {100 * own:.1f} | {100 * base:.1f}"
        for column, own, base in zip(columns, agrees, commoner, strict=True)
    ]
    title = f"{counted}: links (paper: 95.8, 80.1 and 72.3 %)"
    yield table(title, "link | right yes or no, % | the commoner of both, %", links)
    chosen = np.where(yes.any(axis=1), np.array(columns)[yes.argmax(axis=1)], len(study.costs_ms) - 1)
    is_right = right[np.arange(len(chosen)), chosen]
    sound = fit_soundness(near.distance, is_right, right[:, -1])
    steps = [f"{end:.3f} | {100 * share:.1f}" for end, share in sound.steps]
    yield table(f"{counted}: in doubt beyond a distance of {sound.limit}", "up to | right choices, %", steps)
