"""What the simulator's process is told: how to begin, as one line of JSON, and what to do later."""

from __future__ import annotations

import msgspec

from tests.simulator.power import Power


class Setup(msgspec.Struct, frozen=True):
    """The first line."""

    tree: str
    mountpoint: str
    connection: int  # the descriptor on which the kernel's requests arrive
    begin_ns: int  # CLOCK_MONOTONIC at the beginning of the power and of the chips
    power: Power
    chip: int | None  # the configuration register of each chip; None: as it is after power-on
    driver: str  # see Simulator
    shares: dict[str, float] | None
    shunts_mohm: dict[str, float]
    sag_mohm: float
    transfer_us: float


class Truth(msgspec.Struct, tag=True, frozen=True):
    """Asks for the joules of some rails; None: of the board."""

    rails: list[str] | None
    begin_ns: int
    end_ns: int


class Fail(msgspec.Struct, tag=True, frozen=True):
    """Gives rails a fault (rails.FAULTS), or heals them: None."""

    rails: list[str]
    kind: str | None
    seconds: float


class Follow(msgspec.Struct, tag=True, frozen=True):
    """Names the process whose work makes the power."""

    pid: int


class Rails(msgspec.Struct, tag=True, frozen=True):
    """Asks for each rail's share of the board's power."""


Order = Truth | Fail | Follow | Rails


class Answer(msgspec.Struct, frozen=True):
    """One line for each order, and one when the simulator is ready."""

    refused: str | None = None
    joules: float | None = None
    rails: dict[str, float] | None = None
