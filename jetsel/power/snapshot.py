"""What every rail reads at one moment, in the form that `jetsel power --json` prints."""

from __future__ import annotations

import msgspec

from jetsel.power.finding import Found
from jetsel.power.sensors.rail import Dropped, RailError

TOTAL = "total"
"""The name under which `dropped` says why there is no total."""


class RailPower(msgspec.Struct, frozen=True):
    """One rail. volts and amps: None where its sensor has none."""

    name: str
    watts: float
    volts: float | None
    amps: float | None


class Snapshot(msgspec.Struct, frozen=True):
    """Power at one moment. total_w: None, and total_of empty, where there is no total; `dropped` then says why."""

    board: str | None
    rails: list[RailPower]
    total_w: float | None
    total_of: list[str]
    dropped: list[Dropped]


def take(found: Found) -> Snapshot:
    """Read every rail once, in turn. A rail that fails now is dropped, and with it a total that it is part of."""
    rails: dict[str, RailPower] = {}
    dropped = list(found.dropped)
    for rail in found.rails:
        try:
            rails[rail.name] = RailPower(rail.name, *rail.measure())
        except RailError as error:  # noqa: PERF203  # a few rails
            dropped.append(Dropped(rail.name, str(error)))
    reason = found.reason
    lost = [name for name in found.total_of if name not in rails]
    if lost:
        reason = f"{', '.join(lost)} could not be read just now"
    if reason is not None:
        return Snapshot(found.board_name, list(rails.values()), None, [], [*dropped, Dropped(TOTAL, reason)])
    total_w = round(sum(rails[name].watts for name in found.total_of), 6)  # rails are whole microwatts
    return Snapshot(found.board_name, list(rails.values()), total_w, list(found.total_of), dropped)
