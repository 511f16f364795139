"""The paper's chain, ours and the cascade, each held out, and what choosing takes."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from calibration.papers.taylor.algorithm1 import optimum_votes
from calibration.papers.taylor.paper_chain import PAPER_K
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Seen, Trial, as_accurate
from calibration.papers.taylor.ways import cascade, chain, chain_paper
from jetsel.features import PAPER_SEVEN
from jetsel.premodel import Neighbours, fit_scaling

TIMED = 200  # choices


class Shown:
    """The paper's chain, ours and the cascade, each held out."""

    def __init__(self, study: Study) -> None:
        self.study, plan = study, study.plan
        self.features_ms = {"chain-paper": study.clock(PAPER_SEVEN), "chain": plan.features_ms}
        ways = (chain_paper(self.features_ms["chain-paper"]), chain(plan), cascade())
        self.trials = {way.name: Trial(way, study.recording, study.folds, study.test) for way in ways}
        self.chooser_ms = {
            "chain-paper": self.features_ms["chain-paper"] + _choice_ms(study, PAPER_SEVEN, PAPER_K),
            "chain": self.features_ms["chain"] + _choice_ms(study, plan.features, plan.k),
            "cascade": 0.0,
        }

    @cached_property
    def seen(self) -> dict[str, Seen]:
        """What each gives as accurate as the best single model."""
        return {name: trial.held_out(as_accurate()) for name, trial in self.trials.items()}

    def whole_ms(self, name: str, seen: Seen) -> float:
        """Return the mean time of models, features and choice."""
        return float(seen.time_ms.mean()) + self.chooser_ms[name] - self.features_ms.get(name, 0.0)


def _choice_ms(study: Study, names: tuple[str, ...], k: int) -> float:
    """Return the median time of finding one image's neighbours and counting their votes."""
    known = study.columns(names)
    scaling = fit_scaling(known)
    near, votes, times_ms = Neighbours(scaling.apply(known)), optimum_votes(study.right, study.costs_ms), []
    for x in known[:TIMED]:
        began = time.thread_time()
        rows, _ = near.nearest(scaling.apply(x), k)
        votes[rows].sum(axis=0)
        times_ms.append((time.thread_time() - began) * 1e3)
    return study.clock.factor * float(np.median(times_ms))
