"""How a test asks for power: `power=square(...)`; the simulator's process makes the source of it (sources.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name

import msgspec

from tests.simulator.following import Following
from tests.simulator.sources import Constant, Function, Level, Recorded, Source, Square


class Power(msgspec.Struct, frozen=True):
    """A kind of source and what it is made with."""

    kind: str
    values: dict[str, float | str]

    def source(self) -> Source:
        return _MAKERS[self.kind](**self.values)


def constant(watts: float) -> Power:
    """Always the same."""
    return Power("constant", {"watts": watts})


def square(period_s: float, duty: float, low_w: float, high_w: float) -> Power:
    """`high_w` for the first `duty` (0 to 1) of each period, then `low_w`; a period begins at the beginning."""
    return Power("square", {"period_s": period_s, "duty": duty, "low_w": low_w, "high_w": high_w})


def recorded(path: Path) -> Power:
    """The total of a trace that `jetsel power record` wrote, over and over."""
    return Power("recorded", {"path": str(path)})


def function(name: str) -> Power:
    """A function by its import string, "package.module:function": seconds since the beginning to watts.

    Integrated in steps of 0.1 ms, whose middle stands for the whole of each.
    """
    return Power("function", {"name": name})


def following(idle_w: float, busy_w: float) -> Power:
    """`idle_w`, and `busy_w` for each core that a process and its children keep busy: `Simulator.follow` says which."""
    return Power("following", {"idle_w": idle_w, "busy_w": busy_w})


def level(watts: float) -> Power:
    """What is written into `Simulator.level_file`, from the moment of the writing; `watts` until then."""
    return Power("level", {"watts": watts})


_MAKERS: dict[str, Callable[..., Source]] = {
    "constant": Constant,
    "square": Square,
    "recorded": lambda path: Recorded(Path(path)),
    "function": lambda name: Function(resolve_name(name)),
    "following": Following,
    "level": Level,
}
