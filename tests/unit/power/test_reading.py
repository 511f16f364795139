"""Energy that nobody measured is unknown with a reason, never zero."""

from __future__ import annotations

from jetsel.power import NO_METER


def test_without_a_meter_the_energy_is_unknown_and_says_why() -> None:
    assert (NO_METER.energy_mj, NO_METER.reason) == (None, "no meter")
