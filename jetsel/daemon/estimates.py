"""Estimated energy of an answer, from the calibrated energies of the models that ran, and sums of these estimates."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from jetsel.artefact.calibration import Calibration
from jetsel.wire import Answer, Ran
from jetsel.wire.power import ModelEnergy, PolicyEnergy

NO_CALIBRATION = "the family has no calibration: run `jetsel calibrate` on a device that measures power"


def estimated_mj(
    ran: Sequence[Ran], uses_features: bool, calibration: Calibration | None, mj_per_kb: float | None
) -> tuple[float | None, str | None]:
    """Return the calibrated energy of the runs in mJ and no reason, or None and the reason why it is unknown.

    uses_features: whether features were computed, whose energy is added. mj_per_kb: the device's energy for sending and
    receiving 1,000 bytes; the edge server's own energy does not count.
    """
    if calibration is None or not calibration.energy.mean_mj:
        return None, no_energies(calibration)
    local_models = [run.model for run in ran if run.sent_bytes is None]
    runs_mj = calibration.energy.mean_mj
    unknown = [model for model in local_models if model not in runs_mj]
    if unknown:
        return None, f"the calibration has no energy of {', '.join(unknown)}"
    sent_kb = sum((run.sent_bytes or 0) + (run.received_bytes or 0) for run in ran) / 1e3
    if sent_kb and mj_per_kb is None:
        return None, f"the energy of sending {sent_kb:.0f} kB is unknown: set edge.mj_per_kb"
    models_mj = sum(runs_mj[model] for model in local_models)
    features_mj = calibration.energy.chooser_mj or 0.0 if uses_features else 0.0
    return models_mj + sent_kb * (mj_per_kb or 0.0) + features_mj, None


def no_energies(calibration: Calibration | None) -> str | None:
    """Return why this calibration has no energies, None if it has them."""
    if calibration is None:
        return NO_CALIBRATION
    if calibration.energy.mean_mj:
        return None
    why = f" ({calibration.energy.reason})" if calibration.energy.reason else ""
    return f"the calibration was made without energies{why}: calibrate again on a device that measures power"


@dataclass
class _EnergySum:
    """A sum of energies. count: all summands; n_known: those with a known energy; joules: the sum of these."""

    count: int = 0
    n_known: int = 0
    joules: float = 0.0

    def add(self, energy_mj: float | None) -> None:
        self.count += 1
        if energy_mj is not None:
            self.n_known += 1
            self.joules += energy_mj * 1e-3

    @property
    def known_j(self) -> float | None:
        return self.joules if self.n_known else None

    @property
    def figures(self) -> tuple[int, float | None, float | None]:
        """Return the number of summands, the sum in J, and the mean in mJ; None if no energy is known."""
        return self.count, self.known_j, self.joules / self.n_known * 1e3 if self.n_known else None


class Estimates:
    """Sums of estimated energies since the start: of runs by model, and of answers by policy. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[tuple[str, str], _EnergySum] = defaultdict(_EnergySum)  # by family and model
        self._policies: dict[tuple[str, str], _EnergySum] = defaultdict(_EnergySum)  # by family and policy
        self.chooser = _EnergySum()  # of computing features, by which policies choose models
        self._unused_j = 0.0  # known energies of local runs whose results came too late

    def add(self, answer: Answer, uses_features: bool, calibration: Calibration | None) -> None:
        """Add an answer's energy. uses_features: whether features were computed for it."""
        valid = None if answer.out_of_conditions else calibration  # None: its energies are unknown
        model_mj = valid.energy.mean_mj if valid is not None else {}
        with self._lock:
            for run in answer.ran:
                if run.sent_bytes is None:
                    self._models[answer.family, run.model].add(model_mj.get(run.model))
            if uses_features:
                self.chooser.add(None if valid is None else valid.energy.chooser_mj or 0.0)
            self._policies[answer.family, answer.policy].add(answer.energy_mj)

    def add_unused(self, family: str, model: str, energy_mj: float | None) -> None:
        """Add a run on this device whose result came too late, because another model had answered already."""
        with self._lock:
            self._models[family, model].add(energy_mj)
            self._unused_j += (energy_mj or 0.0) * 1e-3

    def totals(self) -> tuple[float, int, int]:
        """Return the joules of all answers and unused runs, the number of answers, and how many have no estimate."""
        with self._lock:
            sums = self._policies.values()
            count = sum(one.count for one in sums)
            return sum(one.joules for one in sums) + self._unused_j, count, count - sum(one.n_known for one in sums)

    def models(self) -> list[ModelEnergy]:
        """Return the energy of each model that has run for an answer."""
        with self._lock:
            return [ModelEnergy(family, model, *spent.figures) for (family, model), spent in self._models.items()]

    def policies(self) -> list[PolicyEnergy]:
        """Return the energy of each policy's answers."""
        with self._lock:
            return [PolicyEnergy(family, policy, *spent.figures) for (family, policy), spent in self._policies.items()]
