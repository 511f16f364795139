"""Where power is measured: the names that figures are kept under, for whoever writes or reads them."""

from __future__ import annotations

from jetsel.config import Power
from jetsel.power.finding import find
from jetsel.power.idling import Place
from jetsel.power.machine import Machine

JTOP_S = 10.0  # jetson-stats looks for the libraries of the board before it answers


def place(power: Power) -> Place:
    """Return the board as the table of boards names it, else as it names itself, its power mode, and its facts."""
    found = find(power)
    found.close()
    with Machine(power.sysfs, power.jtop) as machine:
        facts = machine.facts(wait_s=JTOP_S if power.jtop else 0.0)
    board = found.board.name if found.board is not None else facts.board.value
    return Place(board, facts.power_mode.value, facts)
