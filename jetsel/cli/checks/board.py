"""The board and its power: model, power mode, sensors, idle power, throttling, and whether jetson-stats answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jetsel.cli.checks import Finding, Subject

if TYPE_CHECKING:
    from jetsel.config import Power


def board(subject: Subject) -> Iterator[Finding]:
    """Ask the kernel, nvpmodel and jetson-stats for the state of the board, and open the sensors."""
    from jetsel.power.machine import look, throttled

    settings = subject.config.power
    facts = look(settings)
    is_jetson = facts.l4t.value is not None
    release = f"L4T {facts.l4t}" if is_jetson else "no Jetson"
    yield Finding("model", "ok" if is_jetson else "info", f"{facts.board}; {release}")
    yield Finding("power mode", "info" if facts.power_mode.value is None else "ok", str(facts.power_mode))
    for reason in throttled(None, facts):
        yield Finding("throttled", "warning", reason, "cool the board, or give it a stronger supply")
    if not settings.jtop:
        yield Finding("jtop", "info", "jetson-stats is not asked: power.jtop = true asks it")
    elif facts.jtop.value is None:
        repair = "sudo pip install jetson-stats and sudo systemctl start jtop, or set [power] jtop = false"
        yield Finding("jtop", "warning", str(facts.jtop.reason), repair)
    else:
        yield Finding("jtop", "ok", f"jetson-stats {facts.jtop} answers")
    yield from _sensors(settings)


def _sensors(settings: Power) -> Iterator[Finding]:
    """Read each rail, and look for what `jetsel power calibrate` measured here in the power mode of now."""
    from jetsel.config import power_folder
    from jetsel.power.finding import check, find
    from jetsel.power.idle import REPAIR
    from jetsel.power.meter import idle_here

    check(settings)
    found = find(settings)
    found.close()
    table = "a board in no table" if found.board is None else found.board.name
    rails = ", ".join(rail.name for rail in found.rails) or "none"
    yield Finding("sensors", "ok" if found.rails else "info", f"{table}: {rails}")
    for rail in found.dropped:
        yield Finding(rail.name, "warning", f"it is not read: {rail.reason}")
    if found.reason is not None:  # on a machine without a sensor whose configuration asks for none, that is no fault
        is_wanted = bool(found.rails) or settings.sensor not in ("auto", "none") or settings.budget_w is not None
        yield Finding("total", "warning" if is_wanted else "info", f"energies stay unknown: {found.reason}")
        return
    yield Finding("total", "ok", " + ".join(found.total_of))
    kept = idle_here(settings, power_folder(settings))
    if isinstance(kept, str):
        yield Finding("idle power", "warning", kept.removesuffix(f": {REPAIR}"), REPAIR)
        return
    idle, doubt = kept
    said = f"{idle.mean_w:.3g} W, give or take {idle.half_width_w:.2g} W, measured {idle.measured_at}"
    if doubt is None:
        yield Finding("idle power", "ok", said)
    else:
        yield Finding("idle power", "warning", f"{said}; {doubt}", REPAIR)
