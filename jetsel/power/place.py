"""Where power is measured: the names that figures are kept under, for whoever writes or reads them."""

from __future__ import annotations

from dataclasses import dataclass

from jetsel.power.finding import Found, find
from jetsel.power.machine import Facts, Machine
from jetsel.power.settings import Settings

JTOP_S = 10.0  # jetson-stats looks for the libraries of the board before it answers


@dataclass(frozen=True)
class Place:
    """Board and power mode as idle power's file is named by them, and what the board says of itself."""

    board: str | None
    power_mode: str | None
    facts: Facts | None


def place(power: Settings, found: Found | None = None) -> Place:
    """Return the board as the table of boards names it, else as it names itself, its power mode, and its facts.

    found: what `find` gave for this configuration, where it was asked already.
    """
    if found is None:
        found = find(power)
        found.close()
    with Machine(power.sysfs, power.jtop) as machine:
        return named(found, machine.facts(wait_s=JTOP_S if power.jtop else 0.0))


def named(found: Found, facts: Facts) -> Place:
    """Return the place of these sensors and facts."""
    board = found.board.name if found.board is not None else facts.board.value
    return Place(board, facts.power_mode.value, facts)
