"""What something took over many requests, and what always using the best single model would have taken more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jetsel.policies.calibration import Calibration
from jetsel.wire import Criterion


@dataclass
class Spent:
    """A sum over photographs. metered: of how many of them the energy is known; energy and time are theirs."""

    count: int = 0
    metered: int = 0
    energy_j: float = 0.0
    seconds: float = 0.0  # that they were worked on, a batch's shared out

    def add(self, energy_j: float | None, seconds: float) -> None:
        """Count one photograph, with its energy, None where that is not known."""
        self.count += 1
        if energy_j is not None:
            self.metered += 1
            self.energy_j += energy_j
            self.seconds += seconds

    @classmethod
    def sum(cls, parts: Iterable[Spent]) -> Spent:
        """Add several up."""
        whole = cls()
        for part in parts:
            whole.count += part.count
            whole.metered += part.metered
            whole.energy_j += part.energy_j
            whole.seconds += part.seconds
        return whole

    @property
    def joules(self) -> float | None:
        """What the metered ones took, None where none was."""
        return self.energy_j if self.metered else None

    @property
    def mean_mj(self) -> float | None:
        """What one took, None where none was metered."""
        return self.energy_j / self.metered * 1e3 if self.metered else None

    @property
    def mean_w(self) -> float | None:
        """The mean power above idle while they were worked on, None where none was metered."""
        return self.energy_j / self.seconds if self.metered and self.seconds > 0 else None


class Kind(NamedTuple):
    """Answers that are compared with the same model. alone: the one that ran by a policy that is this one model."""

    criterion: Criterion
    alone: str | None


def best_single(calibration: Calibration, criterion: Criterion) -> str:
    """Return the model that was right most often on the calibration photographs, of equals the cheapest."""
    models = tuple(calibration.model_sha256)
    return models[int(calibration.right[criterion].mean(axis=0).argmax())]


def saved_j(
    spent: Mapping[Kind, Spent],
    calibration: Calibration | None,
    mean_j: Callable[[str], float | None],
) -> tuple[float | None, str | None]:
    """Return what the best single model would have taken more for the same answers, or None and why.

    spent: one policy's. mean_j: gives the energy of one run of a model, None where it is not known. An answer of the
    best single model itself saved nothing, whatever its own share was beside what others ran.
    """
    if calibration is None:
        return None, "without a calibration no model is known to be best"
    best = {criterion: best_single(calibration, criterion) for criterion, _ in spent}
    others = {kind: one for kind, one in spent.items() if kind.alone != best[kind.criterion]}
    if others and not any(one.metered for one in spent.values()):
        return None, "no answer's energy was measured"
    total_j = 0.0
    for kind, one in others.items():
        if not one.metered:
            continue
        model = best[kind.criterion]
        alone_j = mean_j(model)
        if alone_j is None:
            return None, f"the energy of {model}, the best single model, is not known: no run of it was measured"
        total_j += one.metered * alone_j - one.energy_j
    return total_j, None
