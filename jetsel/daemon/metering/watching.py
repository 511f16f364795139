"""Which part of the daemon is told of what models and policies do, and hands it to the ledger."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jetsel.daemon.metering.bill import CHOOSER, Bill, of_model
from jetsel.power.ledger import Ledger
from jetsel.runtime import Ended, Flight


class Watcher:
    """Notes the runs and choices of one family's flights, each on its request's bill. Implements runtime.Observer."""

    def __init__(self, ledger: Ledger, family: str) -> None:
        self._ledger = ledger
        self._family = family

    def run(self, model: str, flights: Sequence[Flight]) -> Ended:
        """Note a run: one activity, which its flights share equally."""
        bills = [bill for flight in flights if (bill := _bill(flight)) is not None]
        if not bills:
            return _nothing
        activity = self._ledger.begin(of_model(self._family, model))
        for bill in bills:
            bill.add(activity, 1 / len(flights))
        return functools.partial(self._ledger.end, activity)

    def choice(self, flight: Flight) -> Ended:
        """Note that a policy thinks."""
        bill = _bill(flight)
        if bill is None:
            return _nothing
        activity = self._ledger.begin(CHOOSER)
        bill.add(activity)
        return functools.partial(self._ledger.end, activity)


def _bill(flight: Flight) -> Bill | None:
    """The bill of the flight's request, None where its energy is not metered."""
    assert isinstance(flight.tag, Bill)
    return flight.tag if flight.tag.is_metered else None


def _nothing() -> None:
    pass
