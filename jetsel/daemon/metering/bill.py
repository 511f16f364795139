"""What one request did while energy was metered, and what that took: measured, else estimated, else unknown."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from jetsel.policies.calibration import Calibration
from jetsel.power import Reading
from jetsel.power.integration import too_few
from jetsel.power.ledger import Activity, Ledger
from jetsel.wire import Ran

DECODE, CHOOSER = "decode", "chooser"
"""How the ledger names what is no model's."""

_NOTHING = contextlib.nullcontext()


def of_model(family: str, model: str) -> str:
    """How the ledger names the runs of a model."""
    return f"model:{family}/{model}"


class Priced(NamedTuple):
    """The energy of a request, and whether it is what the calibration measured of the models that ran."""

    reading: Reading
    is_estimated: bool


class Bill:
    """The activities of one request, each with the request's share of it: a batch shares its run equally."""

    def __init__(self, ledger: Ledger | None) -> None:
        """ledger: None where nothing is metered; then nothing is noted."""
        self._ledger = ledger
        self.lines: list[tuple[Activity, float]] = []

    @property
    def is_metered(self) -> bool:
        """Whether anything is noted."""
        return self._ledger is not None

    def doing(self, what: str) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the request alone does something."""
        return _NOTHING if self._ledger is None else _Doing(self._ledger, self, what)

    def add(self, activity: Activity, weight: float = 1.0) -> None:
        """Note an activity that has begun."""
        self.lines.append((activity, weight))

    def measured(self, period_ns: int, why_not: str | None) -> Reading:
        """Return the energy of all of it, as far as the samples go now.

        period_ns: how often the sensor has a new value; what took less cannot hold two, and is not looked at. why_not:
        why nothing is metered now, None where it is.
        """
        if self._ledger is None or why_not is not None:
            return Reading(None, why_not or "the metering began while this request was under way")
        ended = [(activity, weight) for activity, weight in self.lines if activity.end_ns is not None]
        length_ns = sum((activity.end_ns or 0) - activity.begin_ns for activity, _ in ended)
        if length_ns < period_ns:
            return Reading(None, too_few(0, length_ns))
        return self._ledger.settle(ended)


class _Doing:
    def __init__(self, ledger: Ledger, bill: Bill, what: str) -> None:
        self._ledger = ledger
        self._bill = bill
        self._what = what

    def __enter__(self) -> None:
        self._activity = self._ledger.begin(self._what)
        self._bill.add(self._activity)

    def __exit__(self, *_: object) -> None:
        self._ledger.end(self._activity)


def estimated(ran: Sequence[Ran], chose: bool, calibration: Calibration | None) -> Reading | None:
    """Return what the calibration measured for the models that ran, and for choosing where features were read.

    None where it has no energies. The uncertainties are added as they are: they share causes, such as the idle power.
    """
    if calibration is None or not calibration.energies_mj:
        return None
    models = [run.model for run in ran]
    unknown = [model for model in models if model not in calibration.energies_mj]
    if unknown:
        return Reading(None, f"the calibration has no energy of {', '.join(unknown)}")
    energy_mj = sum(calibration.energies_mj[model] for model in models)
    if chose:
        energy_mj += calibration.chooser_energy_mj or 0.0
    halves = [calibration.energies_half_mj.get(model) for model in models]
    known = [half for half in halves if half is not None]
    return Reading(energy_mj, None, 0, sum(known) if len(known) == len(halves) else None)


def price(measured: Reading, instead: Reading | None) -> Priced:
    """Return the measured energy where it is known, else the estimate, else None and why."""
    if measured.energy_mj is not None or instead is None:
        return Priced(measured, is_estimated=False)
    if instead.energy_mj is not None:
        return Priced(instead, is_estimated=True)
    return Priced(Reading(None, f"{measured.reason}; {instead.reason}", measured.samples), is_estimated=False)
