"""Arrays that choose: cached neighbours, the chain of links over them, cascades, and what fits them."""

from __future__ import annotations

from jetsel.premodel.algorithm1 import Step, is_right, optimum_votes, select_models
from jetsel.premodel.chain import Chain, Choice, Soundness
from jetsel.premodel.neighbours import Neighbours, Scaling, fit_scaling, worthiest

__all__ = [
    "Chain",
    "Choice",
    "Neighbours",
    "Scaling",
    "Soundness",
    "Step",
    "fit_scaling",
    "is_right",
    "optimum_votes",
    "select_models",
    "worthiest",
]
