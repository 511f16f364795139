"""Measures energy in windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import CalibrationError
from jetsel.power.finding import PowerSettings, find_rails
from jetsel.power.idle import IdlePower, load_idle
from jetsel.power.integration import WindowEnergy, energy_above_idle
from jetsel.power.machine import differences, read_facts
from jetsel.power.sampler import READY_S, Sampler


class Meter:
    """Measures the energy of everything that runs on the board in a window, with samples at its start and end."""

    def __init__(self, sampler: Sampler, idle_w: float) -> None:
        """idle_w: the power to deduct."""
        self._sampler = sampler
        self._idle_w = idle_w

    @property
    def name(self) -> str:
        """Names of the rails that are read."""
        return " + ".join(self._sampler.total_of)

    def begin(self) -> int:
        """Start a window; return its time."""
        return self._sampler.now()

    def since(self, begin_ns: int) -> WindowEnergy:
        """Return the energy above idle power from begin_ns until now (Taylor et al., section 4.2)."""
        samples = self._sampler.between(begin_ns, self._sampler.now())
        if self._sampler.reason is not None:
            return WindowEnergy(None, self._sampler.reason)
        return energy_above_idle(samples, self._idle_w, self._sampler.stale_after_s)


@dataclass(frozen=True)
class OpenedMeter:
    """A meter, or the reason why there is none.

    changes: what changed on the board since idle power was measured, in words; results are then unreliable.
    idle_half_w: half of the 95 % interval of idle power.
    """

    meter: Meter | None = None
    reason: str | None = None
    changes: str | None = None
    idle_half_w: float = 0.0


@contextmanager
def open_meter(settings: PowerSettings, folder: Path) -> Iterator[OpenedMeter]:
    """Provide the meter of this board for a `with` block, with the idle power stored in `folder`."""
    idle = idle_power_here(settings, folder)
    if isinstance(idle, str):
        yield OpenedMeter(reason=idle)
        return
    idle_power, changes = idle
    sampler = Sampler(settings)
    try:
        reason = sampler.reason if sampler.ready(READY_S) else f"the sensors did not answer within {READY_S:g} s"
        if reason is not None:
            yield OpenedMeter(reason=reason)
        else:
            yield OpenedMeter(Meter(sampler, idle_power.mean_w), changes=changes, idle_half_w=idle_power.half_width_w)
    finally:
        sampler.stop()


def idle_power_here(settings: PowerSettings, folder: Path) -> tuple[IdlePower, str | None] | str:
    """Return this board's idle power in its current power mode, and the changes since; or why it is unknown."""
    rails = find_rails(settings)
    rails.close()
    if rails.reason is not None:
        return rails.reason
    facts = read_facts(settings)
    try:
        idle = load_idle(folder, rails.board_name or facts.board.value, facts.power_mode.value, rails.total_of)
    except CalibrationError as error:
        return str(error)
    changes = differences(idle.facts, facts) if idle.facts is not None else []
    return idle, f"since idle power was measured, {'; '.join(changes)}" if changes else None
