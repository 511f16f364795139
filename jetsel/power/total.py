"""Which rails make a board's total: chosen, never guessed, and never with a rail added twice or left out unsaid."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jetsel.power.boards import Board, no_such_board
from jetsel.power.sensors.rail import Detected, Dropped
from jetsel.power.settings import Settings

WHOLE_INPUTS = ("VIN", "VDD_IN", "POM_5V_IN")
"""Rails that are the whole input of every Jetson that has them: jetson-stats issue 51 and pull request 900."""

_EXAMPLE = '[power] total = ["VDD_IN"]'


def choose(power: Settings, board: Board | None, detected: Detected) -> tuple[tuple[str, ...], str | None]:
    """Return the names of the rails whose sum is the total and None, or () and why there is no total, with the repair.

    What decides, in this order: [power] total; the sensor itself where it knows (packages of processors, a trace); the
    table of the board; a single rail that is known as a whole input. detected: what every sensor has.
    """
    if power.board is not None and board is None:
        return (), no_such_board(power.board)
    if not detected.rails:
        return (), _none_found(power, detected.dropped)
    rails = [rail.name for rail in detected.rails]
    names, said_by = _configured(power, board, detected, {*rails, *(each.name for each in detected.dropped)})
    if not names:
        return (), f"nothing says which of {', '.join(rails)} make the total; say it in jetsel.toml, as {_EXAMPLE}"
    parts: dict[str, Collection[str]] = {**detected.parts, **(board.parts if board is not None else {})}
    reason = _missing(names, said_by, rails, detected.dropped) or _twice(names, parts)
    return ((), reason) if reason is not None else (names, None)


def _configured(
    power: Settings, board: Board | None, detected: Detected, every: Collection[str]
) -> tuple[tuple[str, ...], str]:
    """The rails of the total, each once, and who says so; () where nobody does."""
    if power.total:
        return tuple(dict.fromkeys(power.total)), "[power] total"
    if detected.total:
        return tuple(dict.fromkeys(detected.total)), "the sensor"
    whole = tuple(name for name in WHOLE_INPUTS if name in every)
    if board is not None and (len(whole) != 1 or any(name in every for name in board.total)):
        return tuple(board.total), f"the table of {board.name}"
    return (whole if len(whole) == 1 else ()), "its name"


def _missing(names: Collection[str], said_by: str, rails: Collection[str], dropped: Collection[Dropped]) -> str | None:
    for name in names:
        if name not in rails:
            why = next((each.reason for each in dropped if each.name == name), f"the rails are {', '.join(rails)}")
            return f"{name} makes the total, by {said_by}, and is not read: {why}"
    return None


def _twice(names: Collection[str], parts: Mapping[str, Collection[str]]) -> str | None:
    for whole in names:
        part = next((part for part in parts.get(whole, ()) if part in names), None)
        if part is not None:
            return f"{part} is a part of {whole}, and would be added twice; name one of them in [power] total"
    return None


def _none_found(power: Settings, dropped: Collection[Dropped]) -> str:
    if power.sensor == "none" and power.replay is None:
        return '[power] sensor is "none"; "auto" looks for what is there'
    if dropped:
        return "no rail can be read: " + "; ".join(f"{each.name}: {each.reason}" for each in dropped)
    kinds = "INA3221, INA238, RAPL or NVML" if power.sensor == "auto" else power.sensor.upper()
    return f"no power sensor ({kinds}) under {power.sysfs}; [power] replay plays a recorded trace instead"
