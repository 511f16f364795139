"""The paper's chain with its votes, as a policy: five neighbours in its seven features, three links, no distance limit.

`chain-paper` was a policy of jetsel once.
"""

from __future__ import annotations

from dataclasses import replace

from jetsel.artefact.calibration import Calibration
from jetsel.features import PAPER_SEVEN
from jetsel.policies.chain import ChainKind, Learned
from jetsel.policies.kind import ChainPlan, Table

NAME = "chain-paper"
PAPER_K = 5  # section 3.3
PAPER_LINKS = 3  # section 3.2: what their Algorithm 1 ended with


class PaperChainKind(ChainKind):
    """The chain with the paper's settings, whatever is planned for the other."""

    name = NAME

    def learn(self, train: Table, plan: ChainPlan) -> Learned | None:
        """Return the first three models of Algorithm 1 and the seven features; None if they were not recorded."""
        if not set(PAPER_SEVEN) <= set(train.feature_names):
            return None
        learned = super().learn(train, replace(plan, features=PAPER_SEVEN, theta_points=-1.0))
        return learned and replace(learned, links=learned.links[:PAPER_LINKS])

    def asks(self, calibration: Calibration) -> tuple[tuple[str, ...], int]:
        """Return those of the paper."""
        return PAPER_SEVEN, min(PAPER_K, calibration.photographs)
