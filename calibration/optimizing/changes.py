"""Everything that can be done to a torch network here: the product's methods apart, and the thesis's variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from calibration.optimizing.rules import RULES, Rule, prune_by
from calibration.optimizing.separable import separable
from jetsel.train.images import Reporter
from jetsel.train.optimize.distil import DistillationPlan
from jetsel.train.optimize.factorise import low_rank, one_d
from jetsel.train.optimize.steps import Change, make_prunable, pruning_trainer


def _factorising(replace: Callable[[nn.Module, float], int]) -> Change:
    def change(net: nn.Module, share: float, _lesson: DistillationPlan, _tell: Reporter) -> int:
        return replace(net, share)

    return change


def _pruning(rule: Rule) -> Change:
    def change(net: nn.Module, share: float, lesson: DistillationPlan, tell: Reporter) -> int:
        went = prune_by(rule, make_prunable(net, lesson), pruning_trainer(lesson, tell), share=share)
        net.cpu()
        return went

    return change


CHANGES: Mapping[str, Change] = {
    **{name: _pruning(rule) for name, rule in RULES.items()},
    "svd": _factorising(low_rank),
    "one-d": _factorising(one_d),
    "separable": _factorising(separable),
}
"""By the names of recipes."""
