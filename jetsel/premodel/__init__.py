"""Learned choosers of models, on plain arrays: nearest neighbours, the chain that reads them, paths, cascades."""

from __future__ import annotations

from jetsel.premodel.cascades import is_right
from jetsel.premodel.chain import Chain, PathEstimates
from jetsel.premodel.neighbours import Neighbours, Scaling, fit_scaling, rounded, worthiest

__all__ = ["Chain", "Neighbours", "PathEstimates", "Scaling", "fit_scaling", "is_right", "rounded", "worthiest"]
