"""The learned chooser of Taylor et al.: cached neighbours, the chain of links over them, its fitting, its artefact."""

from __future__ import annotations

from jetsel.premodel.artefact import Calibration, Rung, Skip, Soundness, Weighing, check
from jetsel.premodel.chain import Chain, Choice, optimum_votes, right_votes
from jetsel.premodel.fit import Votes, chain_from, fit_chain
from jetsel.premodel.neighbours import Neighbours
from jetsel.premodel.scaling import Scaling, fit_scaling
from jetsel.premodel.shares import Shares, worthiest
from jetsel.premodel.storage import load, save
from jetsel.premodel.trees import Trees, chances

__all__ = [
    "Calibration",
    "Chain",
    "Choice",
    "Neighbours",
    "Rung",
    "Scaling",
    "Shares",
    "Skip",
    "Soundness",
    "Trees",
    "Votes",
    "Weighing",
    "chain_from",
    "chances",
    "check",
    "fit_chain",
    "fit_scaling",
    "load",
    "optimum_votes",
    "right_votes",
    "save",
    "worthiest",
]
