"""What `jetsel status` says of power: the board's, the budget, and what models and policies took of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.wire.power import BatteryStatus, EstimatesJudged, PowerStatus


def power_lines(power: PowerStatus) -> list[str]:
    """Return what is to be said of the board's power and of the choosing's."""
    lines = [_total(power)]
    lines += _state(power)
    lines += [f"  rail {rail.name} is not read: {rail.reason}" for rail in power.dropped]
    if power.idle_reason not in (None, power.reason):
        lines.append(f"  energy above idle is not measured: {power.idle_reason}")
    if power.budget is not None:
        lines.append(f"power budget: {power.budget.budget_w:g} W; level {power.budget.level}, {power.budget.state}")
    if power.battery is not None and (power.battery.percent is not None or power.battery.reserve_percent is not None):
        lines.append(_battery(power.battery))
    lines += [f"out of its conditions: {reason}" for reason in power.out_of_conditions]
    if power.chooser_j is not None:
        share = "" if power.chooser_share is None else f", {power.chooser_share:.0%} of what choosing and models took"
        lines.append(f"choosing took {joules(power.chooser_j)}{share}")
    return lines + ([] if power.judged is None else _judged(power.judged))


def energy_tables(power: PowerStatus) -> list[Table]:
    """Return what each model and each policy took, where any has been at work."""
    from jetsel.cli.terminal import table

    found = []
    if power.models:
        models = table("model", "family", ">photographs", ">energy", ">mJ each")
        models.title = "estimated energy above idle by model"
        for model in power.models:
            took = (joules(model.joules), figure(model.mean_mj))
            models.add_row(model.model, model.family, str(model.photographs), *took)
        found.append(models)
    if power.policies:
        policies = table("policy", "family", ">answers", ">energy", ">mJ each", ">saved")
        policies.title = "estimated energy above idle by policy, choosing included"
        for policy in power.policies:
            took = (joules(policy.joules), figure(policy.mean_mj))
            policies.add_row(policy.policy, policy.family, str(policy.answers), *took, joules(policy.saved_j))
        found.append(policies)
    return found


def joules(value: float | None) -> str:
    """Return an energy with three digits that mean something, or a dash where it is not known."""
    if value is None:
        return "-"
    times, unit = (1e-3, "kJ") if abs(value) >= 1e3 else (1, "J") if abs(value) >= 1 else (1e3, "mJ")
    return f"{value * times:.3g} {unit}"


def _total(power: PowerStatus) -> str:
    mode = "" if power.power_mode is None else f"; power mode {power.power_mode}"
    if power.reason is not None:
        return f"power: not measured: {power.reason}{mode}"
    parts = [f"{power.watts:.2f} W now" if power.watts is not None else "not known now"]
    if power.mean_w is not None:
        parts.append(f"{power.mean_w:.2f} W in the mean")
    if power.idle_w is not None:
        parts.append(f"{power.idle_w:.2f} W idle")
    if power.rate_hz is not None:
        parts.append(f"read {power.rate_hz:.3g} times a second")
    return f"power: {', '.join(parts)} ({' + '.join(power.total_of)}){mode}"


def _judged(judged: EstimatesJudged) -> list[str]:
    """What the sensor measured beside what the estimates add up to."""
    if judged.measured_j is None and not judged.answers:
        return []
    error = "" if judged.measured_half_j is None else f" ± {joules(judged.measured_half_j)}"
    measured = "nothing" if judged.measured_j is None else f"{joules(judged.measured_j)}{error}"
    known = judged.answers - judged.unestimated
    ratio = "" if judged.ratio is None else f"; measured over estimated: {judged.ratio:.2f}"
    return [
        f"above idle since the start: {measured} measured, {joules(judged.estimated_j)} estimated for {known} of "
        f"{judged.answers} answers{ratio}"
    ]


def _battery(battery: BatteryStatus) -> str:
    """The battery and its reserve, where there is either."""
    does = {True: "discharging", False: "not discharging", None: str(battery.reason)}[battery.discharging]
    now = does if battery.percent is None else f"{battery.percent:.0f} %, {does}"
    return f"battery: {now}" + (
        "" if battery.reserve_percent is None else f"; reserve {battery.reserve_percent:g} %: {battery.state}"
    )


def _state(power: PowerStatus) -> list[str]:
    """The board's own state on one line, where it tells any of it."""
    parts = [] if power.gpu_load is None else [f"GPU load {power.gpu_load:.0%}"]
    parts += [f"{name} {celsius:.0f} °C" for name, celsius in (power.temperatures_c or {}).items()]
    parts += [] if power.jetpack is None else [f"JetPack {power.jetpack}"]
    return [f"board: {', '.join(parts)}"] if parts else []


def figure(value: float | None) -> str:
    """Return a number with three digits that mean something, or a dash where it is not known."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
