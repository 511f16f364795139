"""The energy of an answer by what was calibrated of the models that ran, and what such energies add up to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jetsel.policies.calibration import Calibration
from jetsel.wire import Answer, Criterion, ModelEnergy, PolicyEnergy, Ran

NO_CALIBRATION = "the family has no calibration: make one with `jetsel calibrate` where power is measured"


def estimated_mj(ran: Sequence[Ran], chose: bool, calibration: Calibration | None) -> float | str:
    """Return the calibrated energy of what ran, in mJ, or the reason why it is not known.

    chose: whether features were read, whose energy is added.
    """
    if calibration is None:
        return NO_CALIBRATION
    if not calibration.energies_mj:
        why = f" ({calibration.energy_reason})" if calibration.energy_reason else ""
        return f"the calibration was made without energies{why}: calibrate again where power is measured"
    unknown = [run.model for run in ran if run.model not in calibration.energies_mj]
    if unknown:
        return f"the calibration has no energy of {', '.join(unknown)}"
    models_mj = sum(calibration.energies_mj[run.model] for run in ran)
    return models_mj + (calibration.chooser_energy_mj or 0.0 if chose else 0.0)


@dataclass
class _Spent:
    """A sum over photographs; known: of how many of them the energy is known."""

    count: int = 0
    known: int = 0
    joules: float = 0.0

    def add(self, energy_mj: float | None) -> None:
        self.count += 1
        if energy_mj is not None:
            self.known += 1
            self.joules += energy_mj * 1e-3


class Estimates:
    """Sums of the answers' energies since the start, by model and by policy. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[tuple[str, str], _Spent] = {}
        self._policies: dict[tuple[str, str], dict[Criterion, _Spent]] = {}
        self._all = _Spent()
        self._chooser = _Spent()

    def add(self, answer: Answer, chose: bool, calibration: Calibration | None) -> None:
        """Take in an answer that was given. chose: whether features were read for it."""
        is_known = answer.energy_mj is not None and calibration is not None
        of_model = calibration.energies_mj if is_known and calibration is not None else {}
        with self._lock:
            self._all.add(answer.energy_mj)
            for run in answer.ran:
                self._models.setdefault((answer.family, run.model), _Spent()).add(of_model.get(run.model))
            if chose:
                self._chooser.add(calibration.chooser_energy_mj or 0.0 if is_known and calibration else None)
            by_criterion = self._policies.setdefault((answer.family, answer.policy), {})
            by_criterion.setdefault(answer.criterion, _Spent()).add(answer.energy_mj)

    def totals(self) -> tuple[float, int, int]:
        """Return the joules of all answers, how many there are, and how many of them have no estimate."""
        with self._lock:
            return self._all.joules, self._all.count, self._all.count - self._all.known

    def chooser_j(self) -> float | None:
        """Return what choosing took, None where none of it is known."""
        return _joules(self._chooser)

    def chooser_share(self) -> float | None:
        """Return what choosing took over all that choosing and models took (Taylor et al., section 5.5)."""
        chooser_j, all_j = self.chooser_j(), self._all.joules
        return chooser_j / all_j if chooser_j is not None and all_j > 0 else None

    def models(self) -> list[ModelEnergy]:
        """Return what each model took that has run for an answer."""
        with self._lock:
            return [
                ModelEnergy(family, model, spent.count, _joules(spent), _mean_mj(spent))
                for (family, model), spent in self._models.items()
            ]

    def policies(self, calibrations: Mapping[str, Calibration | None]) -> list[PolicyEnergy]:
        """Return what the answers of each policy took. calibrations: of each family."""
        with self._lock:
            return [
                _policy(family, policy, spent, calibrations.get(family))
                for (family, policy), spent in self._policies.items()
            ]


def best_single(calibration: Calibration, criterion: Criterion) -> str:
    """Return the model that was right most often on the calibration photographs, of equals the cheapest."""
    models = tuple(calibration.model_sha256)
    return models[int(calibration.right[criterion].mean(axis=0).argmax())]


def _policy(
    family: str, policy: str, spent: Mapping[Criterion, _Spent], calibration: Calibration | None
) -> PolicyEnergy:
    whole = _Spent(
        sum(one.count for one in spent.values()),
        sum(one.known for one in spent.values()),
        sum(one.joules for one in spent.values()),
    )
    saved = _saved_j(spent, calibration)
    saved_j, reason = (None, saved) if isinstance(saved, str) else (saved, None)
    return PolicyEnergy(family, policy, whole.count, _joules(whole), _mean_mj(whole), saved_j, reason)


def _saved_j(spent: Mapping[Criterion, _Spent], calibration: Calibration | None) -> float | str:
    """Return what the best single model would have taken more for the same answers, or why that is not known."""
    if calibration is None:
        return "without a calibration no model is known to be best"
    if not any(one.known for one in spent.values()):
        return "no answer's energy is known"
    total_j = 0.0
    for criterion, one in spent.items():
        model = best_single(calibration, criterion)
        if model not in calibration.energies_mj:
            return f"the energy of {model}, the best single model, is not known"
        total_j += one.known * calibration.energies_mj[model] * 1e-3 - one.joules
    return total_j


def _joules(spent: _Spent) -> float | None:
    return spent.joules if spent.known else None


def _mean_mj(spent: _Spent) -> float | None:
    return spent.joules / spent.known * 1e3 if spent.known else None
