"""What looking for one kind of sensor gives: its rails, what was dropped, and how its rails relate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from jetsel.power.sensors.rail import Dropped, Rail, RailError


@dataclass(frozen=True)
class Sensed:
    """The rails of one kind of sensor.

    total: names of rails that make the whole of what this sensor sees, the dropped ones too; () where only a table of
    boards knows. parts: of a rail that contains others, their names: never added to it.
    """

    rails: tuple[Rail, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    total: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def opened(wanted: Iterable[tuple[str, Callable[[], Rail]]]) -> tuple[tuple[Rail, ...], tuple[Dropped, ...]]:
    """Open each rail; one whose opening raises RailError is dropped under its name with the error's words."""
    rails: list[Rail] = []
    dropped: list[Dropped] = []
    for name, open_rail in wanted:
        try:
            rails.append(open_rail())
        except RailError as error:  # noqa: PERF203  # a few rails, once
            dropped.append(Dropped(name, str(error)))
    return tuple(rails), tuple(dropped)
