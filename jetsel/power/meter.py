"""Measures the energy of everything that runs between two moments, above the board's idle power."""

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
    """Measures the energy of everything that runs on the board in a window: `begin`, do the work, `since`."""

    def __init__(self, sampler: Sampler, idle_w: float) -> None:
        """idle_w: idle power of the board, which is deducted."""
        self._sampler = sampler
        self._idle_w = idle_w

    @property
    def name(self) -> str:
        """Names of the rails that are added up, for people."""
        return " + ".join(self._sampler.total_of)

    def begin(self) -> int:
        """Take a sample to start a window; return its time in ns, for `since`."""
        return self._sampler.now()

    def since(self, begin_ns: int) -> WindowEnergy:
        """Take a sample; return the energy above idle power from begin_ns until now (Taylor et al., section 4.2)."""
        samples = self._sampler.between(begin_ns, self._sampler.now())
        if self._sampler.reason is not None:
            return WindowEnergy(None, self._sampler.reason)
        return energy_above_idle(samples, self._idle_w, self._sampler.stale_after_s)


@dataclass(frozen=True)
class OpenedMeter:
    """A meter, or the reason why energy cannot be measured.

    changes: what changed on the board since idle power was measured, in words, which makes results unreliable; None if
    nothing did. idle_half_w: half of the 95 % interval of idle power.
    """

    meter: Meter | None = None
    reason: str | None = None
    changes: str | None = None
    idle_half_w: float = 0.0


@contextmanager
def open_meter(settings: PowerSettings, folder: Path) -> Iterator[OpenedMeter]:
    """Provide a meter of this board for a `with` block. folder: of the files with idle power."""
    stored = idle_power_here(settings, folder)
    if isinstance(stored, str):
        yield OpenedMeter(reason=stored)
        return
    idle, changes = stored
    sampler = Sampler(settings)
    try:
        reason = sampler.reason if sampler.ready(READY_S) else f"the sensors did not answer within {READY_S:g} s"
        if reason is not None:
            yield OpenedMeter(reason=reason)
        else:
            yield OpenedMeter(Meter(sampler, idle.mean_w), changes=changes, idle_half_w=idle.half_width_w)
    finally:
        sampler.stop()


def idle_power_here(settings: PowerSettings, folder: Path) -> tuple[IdlePower, str | None] | str:
    """Return the stored idle power for the current power mode, and what changed since (None); or why it is unknown."""
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
