"""What can be read of power on this machine: its rails, those whose sum is the board's total, and what was dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ConfigError, PowerError
from jetsel.power.boards import Board, boards, no_such_board, recognise
from jetsel.power.sensors import ina238, ina3221, nvml, rapl, replay
from jetsel.power.sensors.rail import Detected, Dropped, Rail, RailError
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
    recorded_on = None
    try:
        if power.replay is None:
            found = _sensors(power, root)
        else:
            played, recorded_on = replay.detect(Path(power.replay))
            found = [played]
    except RailError as error:
        return Found(None, (), (), (), f"power.replay: {error}")
    detected = _together(found)
    named = power.board or recorded_on
    board = recognise(root) if named is None and power.replay is None else boards().get(named or "")
    names, reason = choose(power, board, detected)
    total = tuple(rail for rail in detected.rails if rail.name in names)
    return Found(board, detected.rails, total, detected.dropped, reason)


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
            replay.detect(Path(power.replay))
        except RailError as error:
            raise ConfigError(f"power.replay: {error}") from None


def _sensors(power: Settings, root: Path) -> list[Detected]:
    kinds: dict[str, Callable[[], Detected]] = {
        "ina3221": lambda: ina3221.detect(root, power.labels),
        "ina238": lambda: ina238.detect(root, power.labels),
        "rapl": lambda: rapl.detect(root),
        "nvml": nvml.detect,
    }
    if power.sensor != "auto":
        return [kinds[power.sensor]()] if power.sensor in kinds else []
    found = [kinds["ina3221"](), kinds["ina238"]()]
    if any(detected.rails or detected.dropped for detected in found):
        return found
    found = [rapl.detect(root)]
    if root == Path("/sys"):  # NVML knows this machine alone, never the one that a copied tree is of
        cards = nvml.detect()
        found += [cards] if cards.total else []  # no card: nothing to tell
    return found


def _together(found: Iterable[Detected]) -> Detected:
    """The rails of every sensor, with each name once: one that has the name of another is closed and dropped."""
    kept: dict[str, Rail] = {}
    whole = Detected()
    for detected in found:
        again = []
        for rail in detected.rails:
            first = kept.setdefault(rail.name, rail)
            if first is not rail:
                rail.close()
                why = f"{rail.where} has the name of {first.where}, which is read; name it by [power] labels"
                again.append(Dropped(rail.name, why))
        total, parts = whole.total + detected.total, {**whole.parts, **detected.parts}
        whole = Detected(tuple(kept.values()), (*whole.dropped, *detected.dropped, *again), total, parts)
    return whole
