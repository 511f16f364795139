"""What can be read of power on this machine: its rails, those whose sum is the board's total, and what was dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ConfigError, PowerError
from jetsel.power.boards import Board, boards, no_such_board, recognise
from jetsel.power.sensors import ina238, ina3221, nvml, rapl, trace
from jetsel.power.sensors.rail import Dropped, Rail, RailError, Sensed
from jetsel.power.settings import Settings
from jetsel.power.sysfs import root_of
from jetsel.power.total import choose


@dataclass(frozen=True)
class Found:
    """Every rail that can be read, with its files open until `close`.

    board: None where it was not recognised. total: the rails whose sum is the board's total, () where there is none,
    and then `reason` says why and names the repair; else it is None.
    """

    board: Board | None
    rails: tuple[Rail, ...]
    total: tuple[Rail, ...]
    dropped: tuple[Dropped, ...]
    reason: str | None

    @property
    def board_name(self) -> str | None:
        """The board's name in the table."""
        return None if self.board is None else self.board.name

    @property
    def total_of(self) -> tuple[str, ...]:
        """The names of the rails of the total."""
        return tuple(rail.name for rail in self.total)

    def close(self) -> None:
        """Close the files of every rail."""
        for rail in self.rails:
            rail.close()


def find(power: Settings) -> Found:
    """Look for the sensors that `power` names and open what answers.

    Never raises: what a sensor or a file says or lacks, and what `check` would refuse, become reasons.
    """
    root = root_of(power.sysfs)
    try:
        sensed, recorded_on = _sense(power, root)
    except RailError as error:
        return Found(None, (), (), (), f"power.replay: {error}")
    rails, dropped = _each_once(sensed)
    if power.replay is not None:
        board = boards().get(power.board or recorded_on or "")
    elif power.board is not None:
        board = boards().get(power.board)
    else:
        board = recognise(root, {rail.name for rail in rails} | {each.name for each in dropped})
    names, reason = choose(power, board, sensed, [rail.name for rail in rails], dropped)
    total = tuple(rail for rail in rails if rail.name in names)
    return Found(board, rails, total, dropped, reason)


def find_some(power: Settings) -> Found:
    """Return what `find` does; raises PowerError where there is not one rail."""
    found = find(power)
    if found.rails:
        return found
    dropped = "".join(f"; {rail.name}: {rail.reason}" for rail in found.dropped)
    raise PowerError(f"{found.reason}{dropped}")


def check(power: Settings) -> None:
    """Refuse what is wrong in the configuration alone: a board that is in no table, a trace that cannot be played.

    Raises ConfigError with the key.
    """
    if power.board is not None and power.board not in boards():
        raise ConfigError(no_such_board(power.board))
    if power.replay is not None:
        try:
            trace.sense(Path(power.replay))
        except RailError as error:
            raise ConfigError(f"power.replay: {error}") from None


def _sense(power: Settings, root: Path) -> tuple[Sensed, str | None]:
    """What the configured sensors give, and the board that a trace was recorded on; raises RailError for a trace."""
    if power.replay is not None:
        return trace.sense(Path(power.replay))
    return _together(_sensors(power, root)), None


def _sensors(power: Settings, root: Path) -> list[Sensed]:
    monitors = {"ina3221": ina3221.sense, "ina238": ina238.sense}
    if power.sensor in monitors:
        return [monitors[power.sensor](root, power.labels)]
    if power.sensor == "rapl":
        return [rapl.sense(root)]
    if power.sensor == "nvml":
        return [nvml.sense()]
    if power.sensor == "none":
        return []
    found = [sense(root, power.labels) for sense in monitors.values()]
    if any(sensed.rails or sensed.dropped for sensed in found):
        return found
    found = [rapl.sense(root)]
    if root == Path("/sys"):  # NVML knows this machine alone, never the one that a copied tree is of
        cards = nvml.sense()
        found += [cards] if cards.total else []  # no card: nothing to tell
    return found


def _together(found: Iterable[Sensed]) -> Sensed:
    found = tuple(found)
    return Sensed(
        tuple(rail for sensed in found for rail in sensed.rails),
        tuple(dropped for sensed in found for dropped in sensed.dropped),
        tuple(name for sensed in found for name in sensed.total),
        {whole: parts for sensed in found for whole, parts in sensed.parts.items()},
    )


def _each_once(sensed: Sensed) -> tuple[tuple[Rail, ...], tuple[Dropped, ...]]:
    """The rails with each name once: one that is reached by a second path is closed and dropped."""
    kept: dict[str, Rail] = {}
    again: list[Dropped] = []
    for rail in sensed.rails:
        first = kept.setdefault(rail.name, rail)
        if first is not rail:
            rail.close()
            why = f"{rail.where} has the name of {first.where}, which is read; another rail is named in [power] labels"
            again.append(Dropped(rail.name, why))
    return tuple(kept.values()), (*sensed.dropped, *again)
