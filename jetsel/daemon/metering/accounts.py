"""The books: what models, policies and choosing took since the start, as `status` tells it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from jetsel.daemon.metering.bill import CHOOSER, DECODE, of_model
from jetsel.daemon.metering.spending import Kind, Spent, saved_j
from jetsel.policies.calibration import Calibration
from jetsel.power.ledger import BEHIND_NS, Activity, Ledger
from jetsel.wire import Criterion, ModelEnergy, PolicyEnergy

SINGLE = "single:"  # how policies that are one model are called

Lines = Sequence[tuple[Activity, float]]


class _Entry(NamedTuple):
    """A request that is over and not entered yet; policy None: it got no answer."""

    ended_ns: int
    family: str
    policy: str | None
    criterion: Criterion
    lines: Lines


class Accounts:
    """Notes requests as they end, and enters their energies once the samples are there. Any thread may call."""

    def __init__(self, ledger: Ledger, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """clock_ns: the ledger's."""
        self._ledger = ledger
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._pending: deque[_Entry] = deque()
        self._activities: dict[str, Spent] = {}  # by the ledger's names
        self._policies: dict[tuple[str, str], dict[Kind, Spent]] = {}  # by family and policy

    def over(self, family: str, policy: str | None, criterion: Criterion, lines: Lines) -> None:
        """Note a request that has ended now. policy: what chose for its answer, None where it got none."""
        self._pending.append(_Entry(self._clock_ns(), family, policy, criterion, lines))

    def enter(self) -> None:
        """Enter what ended long enough ago for its shares to be settled."""
        settled_ns = self._clock_ns() - BEHIND_NS
        if self._pending:
            self._ledger.totals()
        with self._lock:
            while self._pending and self._pending[0].ended_ns < settled_ns:
                entry = self._pending.popleft()
                ended = [line for line in entry.lines if line[0].end_ns is not None]
                for line in ended:
                    self._activities.setdefault(line[0].what, Spent()).add(*_took([line]))
                if entry.policy is not None:
                    spent = self._policies.setdefault((entry.family, entry.policy), {})
                    chosen = [line for line in ended if line[0].what != DECODE]
                    kind = Kind(entry.criterion, _alone(entry.family, entry.policy, chosen))
                    spent.setdefault(kind, Spent()).add(*_took(chosen))

    def models(self, served: Mapping[str, Sequence[str]]) -> list[ModelEnergy]:
        """Return what each model took that has run. served: the models of each family."""
        with self._lock:
            return [
                ModelEnergy(family, model, spent.count, spent.joules, spent.mean_mj, spent.mean_w)
                for family, models in served.items()
                for model in models
                if (spent := self._activities.get(of_model(family, model))) is not None
            ]

    def policies(self, calibrations: Mapping[str, Calibration | None]) -> list[PolicyEnergy]:
        """Return what the answers of each policy took. calibrations: of each family."""
        with self._lock:
            return [
                self._policy(family, policy, spent, calibrations.get(family))
                for (family, policy), spent in self._policies.items()
            ]

    def joules(self, what: str) -> float | None:
        """Return what `chooser` or `decode` took, None where nothing of it was metered."""
        with self._lock:
            return self._activities[what].joules if what in self._activities else None

    def chooser_share(self) -> float | None:
        """Return what choosing took over all that choosing and models took (Taylor et al., section 5.5)."""
        with self._lock:
            taken_j = {what: spent.joules for what, spent in self._activities.items() if what != DECODE}
        chooser_j = taken_j.get(CHOOSER)
        total_j = sum(joules for joules in taken_j.values() if joules is not None)
        return chooser_j / total_j if chooser_j is not None and total_j > 0 else None

    def _policy(
        self, family: str, policy: str, spent: Mapping[Kind, Spent], calibration: Calibration | None
    ) -> PolicyEnergy:
        whole = Spent.sum(spent.values())
        saved, reason = saved_j(spent, calibration, lambda model: self._mean_j(family, model, calibration))
        return PolicyEnergy(family, policy, whole.count, whole.joules, whole.mean_mj, whole.mean_w, saved, reason)

    def _mean_j(self, family: str, model: str, calibration: Calibration | None) -> float | None:
        """What one run of a model takes: by the calibration, where it ran alone, else the mean of its shares here."""
        mean_mj = calibration.energies_mj.get(model) if calibration is not None else None
        if mean_mj is None:
            mean_mj = self._activities.get(of_model(family, model), Spent()).mean_mj
        return None if mean_mj is None else mean_mj * 1e-3


def _alone(family: str, policy: str, lines: Lines) -> str | None:
    """Return the model of a policy that is one model, where it alone ran: under the budget it may be another."""
    model = policy.removeprefix(SINGLE)
    ran = {line[0].what for line in lines} - {CHOOSER}
    return model if policy.startswith(SINGLE) and ran == {of_model(family, model)} else None


def _took(lines: Lines) -> tuple[float | None, float]:
    """Return the shares' energy in joules, None where the power was not known all the time, and their time."""
    seconds = sum(weight * ((activity.end_ns or 0) - activity.begin_ns) * 1e-9 for activity, weight in lines)
    if any(activity.unmetered_s > 1e-9 for activity, _ in lines):
        return None, seconds
    return sum(weight * activity.energy_mj for activity, weight in lines) * 1e-3, seconds
