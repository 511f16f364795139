"""The boards that are known: how each is recognised, and which of its rails make its total.

The tables are calibration/boards/*.toml, which the wheel carries as jetsel/power/boards_data.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

import msgspec

from jetsel.power import sysfs

_IN_WHEEL = Path(__file__).parent / "boards_data"
_IN_CHECKOUT = Path(__file__).parents[2] / "calibration" / "boards"


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One board of the table.

    name: as `[power] board` takes it. title and note: for people. compatible: words of the device tree's property of
    that name, boards by their number (p3310 stands for p3310-1000 too). total: the rails whose sum is its total.
    parts: of a rail that has others in it, their names.
    """

    name: str
    title: str
    compatible: list[str]
    total: list[str]
    note: str
    parts: dict[str, list[str]] = {}


@cache
def boards() -> dict[str, Board]:
    """Return every board by its name."""
    folder = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT
    read = [msgspec.toml.decode(path.read_bytes(), type=Board) for path in sorted(folder.glob("*.toml"))]
    return {board.name: board for board in read}


def recognise(root: Path) -> Board | None:
    """Return the board that a root of sysfs is of, None if it is none of the table."""
    words = set(re.split(r"[\0,+\s]+", sysfs.text(root / "firmware/devicetree/base/compatible").lower()))
    return next((board for board in boards().values() if any(_names(key, words) for key in board.compatible)), None)


def no_such_board(name: str) -> str:
    """Return the words for a `[power] board` that is in no table."""
    return f"power.board: there is no board {name!r}; known: {', '.join(boards())}"


def _names(key: str, words: Collection[str]) -> bool:
    return any(word == key or word.startswith(f"{key}-") for word in words)
