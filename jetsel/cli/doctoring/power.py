"""Power: rails, their total, what is dropped, whether idle power is known, and whether jetson-stats answers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jetsel.cli.doctoring.finding import Finding, State, Subject
from jetsel.errors import CalibrationError, ConfigError

if TYPE_CHECKING:
    from jetsel.config import Power
    from jetsel.power.finding import Found
    from jetsel.power.machine import Facts


def power(subject: Subject) -> Iterator[Finding]:
    """Open the sensors, read each rail once, and ask the board for its state."""
    from jetsel.power.finding import check, find
    from jetsel.power.machine import Machine
    from jetsel.power.place import JTOP_S

    settings = subject.config.power
    try:
        check(settings)
    except ConfigError as error:
        yield Finding("configuration", "failed", str(error), "correct that key in jetsel.toml")
        return
    found = find(settings)
    try:
        yield from _rails(settings, found)
    finally:
        found.close()
    with Machine(settings.sysfs, settings.jtop) as machine:
        facts = machine.facts(wait_s=JTOP_S)
    if found.reason is None:
        yield from _idle(settings, found, facts)
    yield from _state(facts)
    yield _jtop(settings, facts)


def _rails(settings: Power, found: Found) -> Iterator[Finding]:
    if settings.sensor == "none" and settings.replay is None:
        yield Finding("sensors", "info", "power is not read: power.sensor is none")
        return
    if found.board is None:
        yield Finding(
            "table of boards", "info", "this board is in none: rails that make a total are named by the owner"
        )
    else:
        yield Finding("table of boards", "ok", f"{found.board.name}: {found.board.title}")
    yield from (_rail(rail.name, rail.where, found.read_us[rail.name]) for rail in found.rails)
    yield from (Finding(rail.name, "warning", f"dropped: {rail.reason}") for rail in found.dropped)
    if found.reason is None:
        yield Finding("total", "ok", " + ".join(found.total_of))
        return
    # Nobody asked for energy on a machine that has no sensor and names none.
    is_wanted = bool(found.rails) or settings.sensor != "auto" or settings.budget_w is not None
    state: State = "warning" if is_wanted else "info"
    yield Finding("total", state, f"energies stay unknown: {found.reason}")


def _rail(name: str, where: str, read_us: float) -> Finding:
    return Finding(name, "ok", f"{where}: a reading takes {read_us / 1e3:.2g} ms")


def _idle(settings: Power, found: Found, facts: Facts) -> Iterator[Finding]:
    """What `jetsel power calibrate` measured for this board in the power mode of now."""
    from jetsel.config import power_folder
    from jetsel.power.idle import REPAIR, load
    from jetsel.power.machine import differences
    from jetsel.power.place import named

    here = named(found, facts)
    try:
        idle = load(power_folder(settings), here.board, here.power_mode, found.total_of)
    except CalibrationError as error:
        yield Finding("idle power", "warning", str(error).removesuffix(f": {REPAIR}"), REPAIR)
        return
    said = f"{idle.mean_w:.3g} W, give or take {idle.half_width_w:.2g} W, measured {idle.measured_at}"
    changes = differences(idle.facts, facts) if idle.facts is not None else []
    if changes:
        yield Finding("idle power", "warning", f"{said}; since then {'; '.join(changes)}", f"{REPAIR} again")
    else:
        yield Finding("idle power", "ok", said)


def _state(facts: Facts) -> Iterator[Finding]:
    from jetsel.power.machine import throttled

    pinned = facts.jetson_clocks
    if pinned.value is None:
        yield Finding("jetson_clocks", "info", f"not known: {pinned.reason}")
    else:
        yield Finding("jetson_clocks", "ok", f"{'on' if pinned.value else 'off'} ({pinned.how})")
    for reason in throttled(None, facts):
        yield Finding(
            "throttled", "warning", reason, "cool the board, give it a stronger supply, or a lower power mode"
        )


def _jtop(settings: Power, facts: Facts) -> Finding:
    """What became of jetson-stats; where it is not wanted it is not imported."""
    if not settings.jtop:
        installed = importlib.util.find_spec("jtop") is not None
        more = "; it is installed: power.jtop = true asks it" if installed else ""
        return Finding("jetson-stats", "info", f"{facts.jtop.reason}{more}")
    if facts.jtop.value is None:
        repair = "sudo pip install jetson-stats and sudo systemctl start jtop, or set [power] jtop = false"
        return Finding("jetson-stats", "warning", str(facts.jtop.reason), repair)
    return Finding("jetson-stats", "ok", f"answers: version {facts.jtop}")
