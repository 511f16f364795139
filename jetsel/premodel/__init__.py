"""Arrays that choose: cached neighbours, the chain of links over them, the paths, cascades, and what fits them."""

from __future__ import annotations

from jetsel.premodel.cascades import is_right
from jetsel.premodel.chain import Chain, PathEstimates
from jetsel.premodel.neighbours import Neighbours, Scaling, fit_scaling, worthiest

__all__ = ["Chain", "Neighbours", "PathEstimates", "Scaling", "fit_scaling", "is_right", "worthiest"]
