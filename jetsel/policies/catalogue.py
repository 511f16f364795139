"""The policies that one family offers under each criterion, by the names that requests use."""

from __future__ import annotations

from collections.abc import Sequence

from jetsel.policies.calibration import Calibration
from jetsel.policies.policy import Policy
from jetsel.policies.registry import KINDS
from jetsel.policies.single import Single
from jetsel.wire import Criterion

CRITERIA: tuple[Criterion, ...] = ("top1", "top5")


def catalogue(models: Sequence[str], calibration: Calibration | None) -> dict[Criterion, dict[str, Policy]]:
    """Return every policy of a family by criterion and name.

    models: the family's, cheapest first. `single:<model>` always; where the family is calibrated, what its calibration
    fitted.
    """
    made: dict[Criterion, dict[str, Policy]] = {
        criterion: {f"single:{model}": Single(model) for model in models} for criterion in CRITERIA
    }
    for kind in KINDS:
        if calibration is not None and kind.name in calibration.parts:
            for criterion, policy in kind.make(calibration.parts[kind.name], calibration).items():
                made[criterion][kind.name] = policy
    return made
