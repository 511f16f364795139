"""The learned chooser of Taylor et al.: cached neighbours, the chain of links over them, its fitting, its artefact."""

from __future__ import annotations

from jetsel.premodel.artefact import Calibration, Rung, check
from jetsel.premodel.chain import Chain, Choice, optimum_votes, right_votes
from jetsel.premodel.fit import Votes, chain_from, cross_validated_choices, fit_chain, held_out_choices
from jetsel.premodel.neighbours import Neighbours
from jetsel.premodel.scaling import Scaling, fit_scaling
from jetsel.premodel.storage import load, save

__all__ = [
    "Calibration",
    "Chain",
    "Choice",
    "Neighbours",
    "Rung",
    "Scaling",
    "Votes",
    "chain_from",
    "check",
    "cross_validated_choices",
    "fit_chain",
    "fit_scaling",
    "held_out_choices",
    "load",
    "optimum_votes",
    "right_votes",
    "save",
]
