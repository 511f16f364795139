"""What something took over many requests, and what always using the best single model would have taken more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from jetsel.premodel import Calibration
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


def best_single(calibration: Calibration, criterion: Criterion) -> str:
    """Return the model that was right most often on the calibration photographs, of equals the cheapest."""
    models = tuple(calibration.model_sha256)
    return models[int(calibration.right[criterion].mean(axis=0).argmax())]


def saved_j(
    spent: Mapping[Criterion, Spent],
    calibration: Calibration | None,
    mean_j: Callable[[str], float | None],
) -> tuple[float | None, str | None]:
    """Return what the best single model would have taken more for the same answers, or None and why.

    spent: one policy's, by criterion. mean_j: gives the energy of one run of a model, None where it is not known.
    """
    if calibration is None:
        return None, "without a calibration no model is known to be best"
    metered = {criterion: one for criterion, one in spent.items() if one.metered}
    if not metered:
        return None, "no answer's energy was measured"
    total_j = 0.0
    for criterion, one in metered.items():
        model = best_single(calibration, criterion)
        alone_j = mean_j(model)
        if alone_j is None:
            return None, f"the energy of {model}, the best single model, is not known: no run of it was measured"
        total_j += one.metered * alone_j - one.energy_j
    return total_j, None
