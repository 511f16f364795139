"""Finds the power rails of this machine, those whose sum is the board's total, and the rails that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from jetsel.base.errors import ConfigError
from jetsel.power import sysfs
from jetsel.power.sensors import ina3221, monitor, rapl
from jetsel.power.sensors.rail import Detected, Rail, RailError
from jetsel.power.sysfs import root_of
from jetsel.wire.power import DroppedRail

_IN_WHEEL = Path(__file__).parent / "boards_data"
_IN_CHECKOUT = Path(__file__).parents[2] / "calibration" / "boards"


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the table of boards, a TOML file in calibration/boards: how to find a board's total power.

    name: value of `[power] board`. title, note: texts for people. compatible: words that identify the board in the
    device tree's `compatible` (p3310 also matches p3310-1000). total: names of the rails whose sum is the power of the
    whole board. parts: rail -> the rails that it feeds, which must not be added to it.
    """

    name: str
    title: str
    compatible: list[str]
    total: list[str]
    note: str
    parts: dict[str, list[str]] = {}


@cache
def boards() -> dict[str, Board]:
    """Return the table of boards by name, read once."""
    folder = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT
    read = [msgspec.toml.decode(path.read_bytes(), type=Board) for path in sorted(folder.glob("*.toml"))]
    return {board.name: board for board in read}


def recognise_board(root: Path) -> Board | None:
    """Return the board that the device tree below `root` (of sysfs) names, None if the table does not have it."""
    words = set(re.split(r"[\0,+\s]+", sysfs.read_text(root / "firmware/devicetree/base/compatible").lower()))
    return next((board for board in boards().values() if any(_matches(key, words) for key in board.compatible)), None)


def no_such_board(name: str) -> str:
    """Return the message for an unknown `[power] board`."""
    return f"power.board: there is no board {name!r}; known: {', '.join(boards())}"


def _matches(key: str, words: Collection[str]) -> bool:
    """Return whether one of the words is the board number `key`, alone or with a revision after a dash."""
    return any(word == key or word.startswith(f"{key}-") for word in words)


class PowerSettings(Protocol):
    """The table [power] of the settings, see `jetsel.base.config.Power`; a protocol, as power imports no settings."""

    @property
    def sensor(self) -> str: ...  # noqa: D102  # "auto", a kind of sensor, or "none"
    @property
    def sysfs(self) -> str: ...  # noqa: D102  # root of sysfs to search
    @property
    def board(self) -> str | None: ...  # noqa: D102  # name in the table of boards; None: recognise it
    @property
    def total(self) -> Sequence[str]: ...  # noqa: D102  # rails whose sum is the board's power; empty: find out
    @property
    def labels(self) -> Mapping[str, str]: ...  # noqa: D102  # names of channels without one, by device and channel
    @property
    def rate_hz(self) -> float: ...  # noqa: D102  # samples a second
    @property
    def jtop(self) -> bool: ...  # noqa: D102  # True: use jetson-stats


@dataclass(frozen=True)
class FoundRails:
    """The power rails of this machine, with their files open until `close`.

    board: entry in the table of boards, None if unknown. rails: every readable rail. total: those whose sum is the
    power of the whole board; () if they are unknown or unreadable, and `reason` then names the repair. dropped: rails
    that cannot be read, each with a reason.
    """

    board: Board | None
    rails: tuple[Rail, ...]
    total: tuple[Rail, ...]
    dropped: tuple[DroppedRail, ...]
    reason: str | None

    @property
    def board_name(self) -> str | None:
        """Name of the board in the table, None if unknown."""
        return None if self.board is None else self.board.name

    @property
    def total_of(self) -> tuple[str, ...]:
        """Names of the rails in `total`."""
        return tuple(rail.name for rail in self.total)

    def close(self) -> None:
        """Close the files of every rail."""
        for rail in self.rails:
            rail.close()


def find_rails(power: PowerSettings) -> FoundRails:
    """Find and open the rails of the sensors that the settings select.

    Nothing is raised: missing or faulty sensors, and errors that `check_board` would raise, become reasons.
    """
    root = root_of(power.sysfs)
    detected = _merge(_detect_sensors(power, root))
    board = recognise_board(root) if power.board is None else boards().get(power.board)
    names, reason = choose_total(power, board, detected)
    total = tuple(rail for rail in detected.rails if rail.name in names)
    return FoundRails(board, detected.rails, total, detected.dropped, reason)


def check_board(power: PowerSettings) -> None:
    """Raise ConfigError with the key if `[power] board` names a board that the table does not have."""
    if power.board is not None and power.board not in boards():
        raise ConfigError(no_such_board(power.board))


def _detect_sensors(power: PowerSettings, root: Path) -> list[Detected]:
    """Return the rails of the configured sensor; "auto" prefers a board's chips to RAPL, the processor's counters."""
    kinds: dict[str, Callable[[], Detected]] = {
        "ina3221": lambda: ina3221.detect(root, power.labels),
        "ina238": lambda: monitor.detect(root, power.labels),
        "rapl": lambda: rapl.detect(root),
    }
    if power.sensor != "auto":
        return [kinds[power.sensor]()] if power.sensor in kinds else []
    all_detected = [kinds["ina3221"](), kinds["ina238"]()]
    if any(detected.rails or detected.dropped for detected in all_detected):
        return all_detected
    return [rapl.detect(root)]


def _merge(all_detected: Iterable[Detected]) -> Detected:
    """Return all sensors' rails, totals and parts in one Detected. Of two rails with one name, drop the second."""
    rails: dict[str, Rail] = {}
    whole = Detected()
    for detected in all_detected:
        duplicates = []
        for rail in detected.rails:
            first = rails.setdefault(rail.name, rail)
            if first is not rail:
                rail.close()
                why = f"{rail.where} has the same name as {first.where}; give it another one under [power] labels"
                duplicates.append(DroppedRail(rail.name, why))
        total, parts = whole.total + detected.total, {**whole.parts, **detected.parts}
        whole = Detected(tuple(rails.values()), (*whole.dropped, *detected.dropped, *duplicates), total, parts)
    return whole


WHOLE_INPUTS = ("VIN", "VDD_IN", "POM_5V_IN")
"""Rails that are the whole input of every Jetson that has them: jetson-stats issue 51 and pull request 900."""


def choose_total(power: PowerSettings, board: Board | None, detected: Detected) -> tuple[tuple[str, ...], str | None]:
    """Return the rails whose sum is the board's power, and None; or (), and why they are unknown with the repair.

    The first of these decides: [power] total; the sensor (RAPL knows its packages); the table of boards; a rail in
    WHOLE_INPUTS, if there is exactly one. board: entry in the table, None if unknown. detected: rails of all sensors.
    """
    if power.board is not None and board is None:
        return (), no_such_board(power.board)
    if not detected.rails:
        return (), _no_rail_reason(power, detected.dropped)
    rails = [rail.name for rail in detected.rails]
    names, source = _named_total(power, board, detected, {*rails, *(rail.name for rail in detected.dropped)})
    if not names:
        unknown = f"it is not known which of {', '.join(rails)} make the total"
        return (), f'{unknown}; set [power] total in jetsel.toml, as [power] total = ["VDD_IN"]'
    parts: dict[str, Collection[str]] = {**detected.parts, **(board.parts if board is not None else {})}
    reason = _missing_reason(names, source, rails, detected.dropped) or _counted_twice_reason(names, parts)
    return ((), reason) if reason is not None else (names, None)


def _named_total(
    power: PowerSettings, board: Board | None, detected: Detected, rail_names: Collection[str]
) -> tuple[tuple[str, ...], str]:
    """Return the names of the total's rails, () if unknown, and who names them. rail_names: all, even dropped ones."""
    if power.total:
        return tuple(dict.fromkeys(power.total)), "[power] total"
    if detected.total:
        return tuple(dict.fromkeys(detected.total)), "the sensor"
    inputs = tuple(name for name in WHOLE_INPUTS if name in rail_names)
    if board is not None and (len(inputs) != 1 or any(name in rail_names for name in board.total)):
        return tuple(board.total), f"the table of {board.name}"
    return (inputs if len(inputs) == 1 else ()), "its name"


def _missing_reason(
    names: Collection[str], source: str, rails: Collection[str], dropped: Collection[DroppedRail]
) -> str | None:
    """Return why a rail of the total is not among the readable `rails`, None if all are. source: names the total."""
    for name in names:
        if name not in rails:
            why = next((rail.reason for rail in dropped if rail.name == name), f"the rails are {', '.join(rails)}")
            return f"{name} is part of the total, according to {source}, but is not read: {why}"
    return None


def _counted_twice_reason(names: Collection[str], parts: Mapping[str, Collection[str]]) -> str | None:
    """Return which rail would be counted twice, None if none: it and a rail that contains it are in the total."""
    for whole in names:
        part = next((part for part in parts.get(whole, ()) if part in names), None)
        if part is not None:
            return f"{part} is a part of {whole}, and would be added twice; name one of them in [power] total"
    return None


def _no_rail_reason(power: PowerSettings, dropped: Collection[DroppedRail]) -> str:
    """Return why no rail can be read, and the repair."""
    if power.sensor == "none":
        return '[power] sensor is "none"; "auto" searches for sensors'
    if dropped:
        return "no rail can be read: " + "; ".join(f"{rail.name}: {rail.reason}" for rail in dropped)
    kinds = "INA3221, INA238 or RAPL" if power.sensor == "auto" else power.sensor.upper()
    return f"no power sensor ({kinds}) under {power.sysfs}: name the tree that has it in [power] sysfs"


TOTAL = "total"
"""Name that stands for the total in PowerReading.dropped if it is unknown."""


class RailPower(msgspec.Struct, frozen=True):
    """One reading of one rail. volts, amps: None if the sensor does not measure them."""

    name: str
    watts: float
    volts: float | None
    amps: float | None


class PowerReading(msgspec.Struct, frozen=True):
    """Power at one moment. total_w: sum of the rails total_of, the whole board; None, with the reason in dropped."""

    board: str | None
    rails: list[RailPower]
    total_w: float | None
    total_of: list[str]
    dropped: list[DroppedRail]


def read_power(found_rails: FoundRails) -> PowerReading:
    """Read every rail once; a rail that fails is reported as dropped, and so is a total that contains it."""
    rails: dict[str, RailPower] = {}
    dropped = list(found_rails.dropped)
    for rail in found_rails.rails:
        try:
            rails[rail.name] = RailPower(rail.name, *rail.measure())
        except RailError as error:  # noqa: PERF203  # a few rails
            dropped.append(DroppedRail(rail.name, str(error)))
    reason = found_rails.reason
    lost = [name for name in found_rails.total_of if name not in rails]
    if lost:
        reason = f"{', '.join(lost)} could not be read just now"
    board, readings = found_rails.board_name, list(rails.values())
    if reason is not None:
        return PowerReading(board, readings, None, [], [*dropped, DroppedRail(TOTAL, reason)])
    total_w = round(sum(rails[name].watts for name in found_rails.total_of), 6)  # rails are in whole microwatts
    return PowerReading(board, readings, total_w, list(found_rails.total_of), dropped)
