"""Figures 9 to 11: the premodel built with other techniques, one for each level, and with one link, two and so on.

Techniques are tuned and fitted on the images of FIT, and judged on those of TEST, beside others in the same mean time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.reproduce import mixed
from calibration.papers.tables import table
from calibration.papers.taylor.algorithm1 import optimum_votes
from calibration.papers.taylor.distances import elected
from calibration.papers.taylor.folds import nearest_in_other_folds
from calibration.papers.taylor.paper_chain import PAPER_K, PAPER_LINKS
from calibration.papers.taylor.readers import points
from calibration.papers.taylor.selection import time_price
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.techniques import ALL, EMBEDDING, SEVEN, Technique, Tuned, techniques, tuned
from calibration.papers.taylor.trials import Trial, as_accurate, at_price, within
from calibration.papers.taylor.ways import PRICES, cascade
from calibration.starter.calibrate import LIMITS
from jetsel import image
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.calibrate.record.replay import Outcomes
from jetsel.features import PAPER_NAMES, PAPER_SEVEN
from jetsel.premodel import worthiest
from jetsel.zoo import Family

BESIDE = "beside the best mix of two models in its time, points | beside the cascade in its time, points"
FREE = f"{EMBEDDING}, as if it were free"
LEVELS = ("KNN", "decision tree", "forest")  # of Figure 10
YES = 0.5  # a link says yes to an image if it is likelier than this that its model is the optimum


def alternatives(study: Study, network: Family | None) -> Iterator[str]:
    """Give the tables of one family. network: a family whose cheapest model is the body of Figure 9's network."""
    compared = Compared(study, network)
    counted = f"{study.family.name}, {len(study.right)} images, {len(study.test.classes)} others"
    columns = f"technique | reads | wish | top-1 % | ms | {BESIDE} | setting"
    yield table(f"{counted}: Figure 9, one technique", columns, list(compared.figure_9()))
    columns = "technique | link | says yes, % | right yes or no, % | the commoner of both, %"
    yield table(f"{counted}: Figure 10, one technique for each level", columns, list(compared.figure_10()))
    columns = "links | top-1 % | least to most of ten folds | mean ms | in doubt, %"
    yield table(f"{study.family.name}, {len(study.right)} images, k = {PAPER_K}: Figure 11", columns, _figure_11(study))


class Compared:
    """Techniques beside mixes of two models and the cascade, on images that nothing was fitted on."""

    def __init__(self, study: Study, network: Family | None) -> None:
        self._study, costs = study, study.costs_ms
        self._seen = {
            reads: (study.columns(names), study.columns(names, study.test), study.clock(names))
            for reads, names in ((SEVEN, PAPER_SEVEN), (ALL, PAPER_NAMES))
        }
        if network is not None:
            both, run_ms = zip(*(embedded(network, one.paths) for one in (study.recording, study.test)), strict=True)
            self._seen[EMBEDDING] = (*both, run_ms[0])
        self._cascade = Trial(cascade(), study.recording, study.folds, study.test)
        half = within(0.5 * float(costs.max()), "half of the largest model's time")
        self._wishes = (as_accurate(), half, at_price(time_price(study.right, costs)))

    def figure_9(self) -> Iterator[str]:
        """Yield a row for each technique and wish: by its probabilities that each model is right, less a price."""
        study, best = self._study, int(self._study.right.mean(axis=0).argmax())
        rival = Outcomes(study.right[:, best], np.full(len(study.right), study.costs_ms[best]))
        for technique in techniques():
            if technique.reads not in self._seen:
                continue
            found, chooser_ms = self._tuned(technique, study.right)
            costs = {technique.reads: chooser_ms} | ({FREE: 0.0} if technique.reads == EMBEDDING else {})
            for (reads, cost_ms), wish in itertools.product(costs.items(), self._wishes):
                place = wish.chosen(self._priced(found.held_out, study.right, cost_ms), rival)
                seen = self._priced(found.others, study.test.right, cost_ms)[place]
                yield f"{technique.name} | {reads} | {wish.name} | {self._beside(seen)} | {found.setting}"

    def figure_10(self) -> Iterator[str]:
        """Yield a row for each technique and link: how often it calls the link's model the optimum, and rightly."""
        study, links = self._study, self._study.links(-1.0)[:PAPER_LINKS]
        known, other = (
            optimum_votes(one.right[:, links], study.costs_ms[links]) for one in (study.recording, study.test)
        )
        for technique in techniques():
            if technique.name in LEVELS and technique.reads == ALL:
                yes = self._tuned(technique, known)[0].others > YES
                agrees, commoner = (yes == other).mean(axis=0), np.maximum(other.mean(axis=0), 1 - other.mean(axis=0))
                for place, link in enumerate(links):
                    yield (
                        f"{technique.name} | {study.recording.models[link]} | {100 * yes[:, place].mean():.1f} | "
                        f"{100 * agrees[place]:.1f} | {100 * commoner[place]:.1f}"
                    )

    def _tuned(self, technique: Technique, due: NDArray[np.bool_]) -> tuple[Tuned, float]:
        known, others, chooser_ms = self._seen[technique.reads]
        return tuned(technique, known, due, self._study.fold_of, others), chooser_ms

    def _priced(self, likely: NDArray[np.float64], right: NDArray[np.bool_], chooser_ms: float) -> Sequence[Outcomes]:
        """Return what each price gives: the model of the largest probability less the price of its time runs."""
        costs = self._study.costs_ms
        chosen = [worthiest(likely, costs, float(price)) for price in PRICES / costs.max()]
        return [Outcomes(right[np.arange(len(one)), one], costs[one] + chooser_ms) for one in chosen]

    def _beside(self, seen: Outcomes) -> str:
        study, mean_ms, correct = self._study, float(seen.time_ms.mean()), seen.correct.astype(float)
        mix = mixed(study.test.right, study.costs_ms, max(mean_ms, study.costs_ms.min()))
        beside = self._cascade.on_others(within(mean_ms, "its time"))
        return (
            f"{100 * correct.mean():.1f} | {mean_ms:.2f} | {points(correct - mix)} | {points(correct - beside.correct)}"
        )


def embedded(family: Family, paths: Sequence[str]) -> tuple[NDArray[np.float32], float]:
    """Return the embeddings that the cheapest model of a family makes of images, (n, width), and the median ms."""
    (model, *_), found, times_ms = family.models, [], []
    spec = model.manifest.input
    with loaded_models(replace(family, models=(model,))) as engines:
        for path in paths:
            photograph = image.decode(image.read_file(Path(path), LIMITS), LIMITS, family.decode_px)
            began = time.thread_time()
            seen = engines[model.manifest.name].infer(image.model_input(photograph, spec)).embedding
            times_ms.append((time.thread_time() - began) * 1e3)
            assert seen is not None
            found.append(seen[0])
    return np.array(found), float(np.median(times_ms))


def _figure_11(study: Study) -> list[str]:
    """Return a row for each number of links, without theta; in doubt the most expensive model answers."""
    near = nearest_in_other_folds(study.columns(PAPER_SEVEN), study.fold_of, PAPER_K).near
    columns, rows = study.links(-1.0), []
    for number in range(1, len(columns) + 1):
        some = columns[:number]
        link = elected(near, optimum_votes(study.right[:, some], study.costs_ms[some]))
        column = np.where(link < 0, len(study.costs_ms) - 1, np.array(some)[link])
        right = study.right[np.arange(len(column)), column]
        folds = [100 * right[study.fold_of == fold].mean() for fold in np.unique(study.fold_of)]
        time_ms = study.costs_ms[column].mean() + study.clock(PAPER_SEVEN)
        rows.append(
            f"{number} | {100 * right.mean():.1f} | {min(folds):.1f} to {max(folds):.1f} | {time_ms:.2f} | "
            f"{100 * (link < 0).mean():.0f}"
        )
    return rows
