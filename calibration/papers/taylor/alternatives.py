"""Figures 9 to 11: the premodel built with other techniques, one for each level, and with one link, two and so on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibration.papers.tables import table
from calibration.papers.taylor.algorithm1 import optimum_votes
from calibration.papers.taylor.distances import elected
from calibration.papers.taylor.network import choose_by_network, small_pictures
from calibration.papers.taylor.paper_chain import PAPER_K
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.techniques import Alternative, compare_techniques
from calibration.starter.calibrate import LIMITS
from jetsel.premodel import fit_scaling

COLUMNS = "premodel | top-1 % | mean ms | features and choice, ms"


def alternatives(study: Study, *, network: bool) -> Iterator[str]:
    """Give the tables of one family, best first. network: with the convolutional premodel, which needs torch."""
    found = _figures_9_and_10(study, network)
    counted = f"{study.family.name}, {len(study.right)} images, k = {PAPER_K}"
    for title, rows in (
        ("Figure 9, one technique", [one for one in found if "." not in one.name]),
        ("Figure 10, one technique for each level", [one for one in found if "." in one.name]),
    ):
        ordered = sorted(rows, key=lambda one: -one.accuracy)
        cells = [f"{one.name} | {100 * one.accuracy:.1f} | {one.time_ms:.2f} | {one.choice_ms:.2f}" for one in ordered]
        yield table(f"{counted}: {title}", COLUMNS, cells)
    yield table(f"{counted}: Figure 11", "links | top-1 % | mean ms | in doubt, %", _figure_11(study))


def _figures_9_and_10(study: Study, network: bool) -> list[Alternative]:
    """Return every technique alone, then every mix by level, then the network where it is asked for."""
    columns, last = study.links(study.plan.theta_points), len(study.costs_ms) - 1
    if last not in columns:
        columns.append(last)
    fallback = columns.index(last)
    votes = optimum_votes(study.right[:, columns], study.costs_ms[columns].tolist())
    right, costs_ms = study.right[:, columns], study.costs_ms[columns]
    scaled = fit_scaling(study.features).apply(study.features)
    found = compare_techniques(scaled, votes, right, costs_ms, study.fold_of, PAPER_K, study.plan.features_ms, fallback)
    if network:
        optimum = np.where(votes.any(axis=1), votes.argmax(axis=1), fallback)
        pictures = small_pictures(study.recording.paths, LIMITS)
        chosen, choice_ms = choose_by_network(pictures, optimum, len(columns), study.fold_of)
        share = float(right[np.arange(len(right)), chosen].mean())
        found.append(Alternative("CNN", share, float(costs_ms[chosen].mean()) + choice_ms, choice_ms))
    return found


def _figure_11(study: Study) -> list[str]:
    """Return a row for each number of links, without theta; in doubt the most expensive model answers."""
    columns, rows = study.links(-1.0), []
    for number in range(1, len(columns) + 1):
        some = columns[:number]
        link = elected(study.near, optimum_votes(study.right[:, some], study.costs_ms[some]))
        column = np.where(link < 0, len(study.costs_ms) - 1, np.array(some)[link])
        share = study.right[np.arange(len(column)), column].mean()
        time_ms = study.costs_ms[column].mean() + study.plan.features_ms
        rows.append(f"{number} | {100 * share:.1f} | {time_ms:.2f} | {100 * (link < 0).mean():.0f}")
    return rows
