"""What `jetsel status` says of power: the board's, the budget, and what models and policies took of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.wire import PowerStatus, Sampling


def power_lines(power: PowerStatus) -> list[str]:
    """Return what is to be said of the board's power and of the choosing's."""
    lines = [_total(power)]
    if power.sampling is not None:
        lines.append(f"sampling: {_sampling(power.sampling)}")
    lines += _state(power)
    lines += [f"  rail {rail.name} is not read: {rail.reason}" for rail in power.dropped]
    if power.idle_reason not in (None, power.reason):
        lines.append(f"  energies are not measured: {power.idle_reason}")
    if power.budget is not None:
        lines.append(f"power budget: {power.budget.budget_w:g} W; level {power.budget.level}, {power.budget.state}")
    lines += [f"out of its conditions: {reason}" for reason in power.out_of_conditions]
    if power.chooser_j is not None:
        share = "" if power.chooser_share is None else f", {power.chooser_share:.0%} of what choosing and models took"
        decode = "" if power.decode_j is None else f"; decoding took {joules(power.decode_j)}"
        lines.append(f"choosing took {joules(power.chooser_j)}{share}{decode}")
    return lines


def energy_tables(power: PowerStatus) -> list[Table]:
    """Return what each model and each policy took, where any has been at work."""
    from rich.markup import escape

    from jetsel.cli.terminal import table

    found = []
    if power.models:
        models = table("model", "family", ">photographs", ">energy", ">mJ each", ">mean W")
        models.title = "energy above idle by model"
        for model in power.models:
            took = (joules(model.joules), figure(model.mean_mj), figure(model.mean_w))
            models.add_row(escape(model.model), escape(model.family), str(model.photographs), *took)
        found.append(models)
    if power.policies:
        policies = table("policy", "family", ">answers", ">energy", ">mJ each", ">mean W", "saved")
        policies.title = "energy above idle by policy, choosing included"
        for policy in power.policies:
            took = (joules(policy.joules), figure(policy.mean_mj), figure(policy.mean_w))
            saved = joules(policy.saved_j) if policy.saved_j is not None else f"not known: {policy.saved_reason}"
            policies.add_row(escape(policy.policy), escape(policy.family), str(policy.answers), *took, escape(saved))
        found.append(policies)
    return found


def joules(value: float | None) -> str:
    """Return an energy with three digits that mean something, or a dash where it is not known."""
    if value is None:
        return "-"
    return (
        f"{value / 1e3:.3g} kJ"
        if abs(value) >= 1e3
        else f"{value:.3g} J"
        if abs(value) >= 1
        else f"{value * 1e3:.3g} mJ"
    )


def _total(power: PowerStatus) -> str:
    mode = "" if power.power_mode is None else f"; power mode {power.power_mode}"
    if power.reason is not None:
        return f"power: not measured: {power.reason}{mode}"
    parts = [f"{power.watts:.2f} W now" if power.watts is not None else "not known now"]
    if power.mean_w is not None:
        parts.append(f"{power.mean_w:.2f} W in the mean")
    if power.idle_w is not None:
        parts.append(f"{power.idle_w:.2f} W idle")
    return f"power: {', '.join(parts)} ({' + '.join(power.total_of)}){mode}"


def _sampling(sampling: Sampling) -> str:
    """How the power is read: at rest first, and then how it goes while a request is under way."""
    parts = [] if sampling.at_rest_hz is None else [f"{sampling.at_rest_hz:g}/s at rest"]
    if sampling.achieved_hz is not None:
        parts.append(f"{sampling.achieved_hz:.0f}/s{' while a request is under way' if parts else ''}")
    if sampling.jitter_p50_us is not None:
        most = "" if sampling.jitter_p99_us is None else f" (99 %: {sampling.jitter_p99_us:.0f} us)"
        parts.append(f"typically {sampling.jitter_p50_us:.0f} us late{most}")
    if sampling.update_period_ms is not None:
        parts.append(f"a new value every {sampling.update_period_ms:.1f} ms")
    if sampling.core_share is not None:
        now = " now" if sampling.at_rest_hz is not None and sampling.achieved_hz is not None else ""
        parts.append(f"costs {100 * sampling.core_share:.1f} % of a core{now}")
    if sampling.restarts:
        parts.append(f"the sampler was started again {sampling.restarts} times")
    return ", ".join(parts) or "nothing is known of it yet"


def _state(power: PowerStatus) -> list[str]:
    """The board's own state on one line, where it tells any of it."""
    parts = [] if power.gpu_load is None else [f"GPU load {power.gpu_load:.0%}"]
    parts += [f"{name} {celsius:.0f} °C" for name, celsius in (power.temperatures_c or {}).items()]
    parts += [] if power.jetpack is None else [f"JetPack {power.jetpack}"]
    return [f"board: {', '.join(parts)}"] if parts else []


def figure(value: float | None) -> str:
    """Return a number with three digits that mean something, or a dash where it is not known."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
