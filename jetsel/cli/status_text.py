"""A daemon's status as lines, which `jetsel status` prints once and `jetsel top` repeatedly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from jetsel.cli.terminal import milliseconds

if TYPE_CHECKING:
    from jetsel.wire import StatusReply
    from jetsel.wire.counts import AnswerCounts, Histogram
    from jetsel.wire.power import EstimatesJudged, PowerStatus
    from jetsel.wire.status import EdgeServerStatus, EdgeStatus, FamilyStatus, FrontStatus, ModelStatus, QueueStatus

STAGES = ("queue", "decode", "features", "choice", "waiting", "input", "inference")  # in the order of a request
PERCENTILES = (0.5, 0.95, 0.99)  # of the latency


def headline(reply: StatusReply) -> str:
    """Return the daemon's version, state, process and memory."""
    memory = "" if reply.resident_mb is None else f", {reply.resident_mb:.0f} MB resident"
    state = f"{reply.state} ({reply.progress})" if reply.progress else reply.state
    return f"jetsel {reply.version} is {state}: process {reply.pid or '-'}, up {duration(reply.uptime_s)}{memory}"


def details(reply: StatusReply, before: StatusReply | None = None) -> Iterator[str]:
    """Yield the lines below the headline. before: an earlier status, since which rates are counted; None: the start."""
    if reply.endpoints:
        yield f"listens on {', '.join(reply.endpoints)}; configured by {reply.config or 'its defaults alone'}"
    yield from load_lines(reply, before)
    for family in reply.families:
        yield from family_lines(family)
    if reply.edge is not None:
        yield from edge_lines(reply.edge)
    yield from power_lines(reply.power)
    yield from fault_lines(reply)


def load_lines(reply: StatusReply, before: StatusReply | None = None) -> list[str]:
    """Return lines about requests, queue and latencies; rate and latencies are since `before`, or since the start."""
    lost = f"; {reply.lost_replies:,} replies lost to clients that do not read" if reply.lost_replies else ""
    lines = [f"requests: {outcomes(reply.requests)}{lost}", *_rate_line(reply, before), _queue_line(reply.queue)]
    return [*lines, *_latency_lines(reply.answers, {} if before is None else before.answers.stages)]


def _rate_line(now: StatusReply, before: StatusReply | None) -> list[str]:
    """Return a line with the requests per second by outcome; none if the times are unknown."""
    now_s, then_s = now.uptime_s, before.uptime_s if before else 0.0
    if now_s is None or then_s is None:
        return []
    seconds = max(now_s - then_s, 1e-3)
    rates = {code: (n - (before.requests.get(code, 0) if before else 0)) / seconds for code, n in now.requests.items()}
    ended = ", ".join(f"{rate:.1f} {code}" for code, rate in rates.items() if rate)
    since = f"in the last {seconds:.1f} s" if before else "since the start"
    return [f"rate: {sum(rates.values()):.1f} requests/s {since}{': ' * bool(ended)}{ended}"]


def _queue_line(queue: QueueStatus) -> str:
    total = None if queue.waiting is None or queue.working is None else queue.waiting + queue.working
    return f"queue: {count(total)} of {count(queue.most_requests)} requests, {count(queue.waiting)} waiting"


def _latency_lines(answers: AnswerCounts, before: dict[str, Histogram]) -> list[str]:
    """Return a line with percentiles of the latency, and one with its mean by stage; none if there were no answers."""
    times = {stage: histogram.since(before.get(stage)) for stage, histogram in answers.stages.items()}
    number = sum(times["total"].counts) if "total" in times else 0
    if not number:
        return []
    within = [
        f"{part:.0%} within {milliseconds(answers.percentile_ms(times['total'], part))} ms" for part in PERCENTILES
    ]
    means = [(stage, (times[stage].sum_ms or 0.0) / number) for stage in STAGES if stage in times]
    return [
        f"latency: {', '.join(within)}",
        f"  on average, in ms: {', '.join(f'{stage} {milliseconds(ms)}' for stage, ms in means if ms)}",
    ]


def family_lines(family: FamilyStatus) -> list[str]:
    """Return lines about a family: its policy, fallback, calibration, drift and models."""
    saves = "" if family.objective is None else f" (to save {family.objective})"
    policy = f"policy: {family.default_policy} ({family.because})"
    lines = [f"family {family.name}: {count(family.classes)} classes; {policy}"]
    if family.front is not None:
        lines += _operating_point_line(family.front)
    lines.append(
        f"  fallback if in doubt: {family.fallback or 'refuse'}; calibration: {family.calibration or 'none'}{saves}"
    )
    if family.wrong_at_most is not None and family.wrong_at_most < 1:
        lacks = "" if family.promises else "; no promise is calibrated: run `jetsel calibrate IMAGES`"
        lines.append(f"  promised share of wrong answers: {family.wrong_at_most:g}{lacks}")
    if family.drift is not None:
        changed = family.drift.hint or family.drift.reason or f"none in {count(family.drift.photographs)} images"
        lines.append(f"  drift: {changed}")
    return lines + _model_lines(family.models) + not_calibrated(family.not_calibrated, family.name)


def not_calibrated(models: Sequence[str], family: str) -> list[str]:
    """Return a line about the family's models without a calibration, or nothing if there are none."""
    repair = f"no policy uses them until `jetsel calibrate IMAGES --family {family}` finds that they pay"
    return [f"  not calibrated: {', '.join(models)}: {repair}"] if models else []


def _operating_point_line(front: FrontStatus) -> list[str]:
    """Return a line with the operating point in use: one of several policies that trade accuracy for time."""
    if len(front.points) < 2:
        return []
    cheapest = f"; the cheapest is in use for {duration(front.cheapest_s)}" if front.cheapest_s else ""
    return [f"  operating point: {front.last or 'none yet'}{cheapest}"]


def _model_lines(models: list[ModelStatus]) -> list[str]:
    """Return one line for the models in each state and backend, and one for each unavailable model."""
    groups: dict[str, list[str]] = {}
    for model in models:
        if model.state != "unavailable":
            runs = f" ({model.runs:,} run{'s' * (model.runs != 1)})" if model.runs else ""
            groups.setdefault(f"{model.state or '-'} on {model.backend or '-'}", []).append(model.name + runs)
    lines = [f"  {state}: {', '.join(names)}" for state, names in groups.items()]
    return lines + [f"  {one.name} is unavailable: {one.reason}" for one in models if one.state == "unavailable"]


def edge_lines(edge: EdgeStatus) -> list[str]:
    """Return the state of the edge server in use and of the others, and the unavailable remote models."""
    lines = [f"edge: {_edge_server(edge)}"]
    lines += [f"  not in use: {_edge_server(server)}" for server in edge.servers if server.url != edge.url]
    unavailable = [model for model in edge.models if model.reason is not None]
    return lines + [f"  {model.name} ({model.remote}): {model.reason}" for model in unavailable]


def _edge_server(server: EdgeStatus | EdgeServerStatus) -> str:
    """Return whether an edge server is available, its network time, and the outcomes of its runs."""
    round_trip = "" if server.network_ms is None else f": {milliseconds(server.network_ms)} ms round trip"
    state = "can be asked" if server.reason is None else f"is away ({server.reason})"
    return f"{server.url} {state}{round_trip}; runs: {outcomes(server.runs)}"


def power_lines(power: PowerStatus) -> list[str]:
    """Return the board's power, the power budget, and how good the energy estimates are."""
    lines = [_board_power(power), *(f"  rail {rail.name} is not read: {rail.reason}" for rail in power.dropped)]
    if power.idle_reason not in (None, power.reason):
        lines.append(f"  energy above idle is not measured: {power.idle_reason}")
    if power.budget is not None:
        lines.append(f"power budget: {figure(power.budget.budget_w)} W; it {power.budget.state}")
    lines += [f"outside the conditions of the calibration: {reason}" for reason in power.out_of_conditions]
    return lines + _energy_estimates(power.judged)


def _board_power(power: PowerStatus) -> str:
    """Return a line with the board's power now, on average and idle, in W, or why it is not measured."""
    mode = "" if power.power_mode is None else f"; power mode {power.power_mode}"
    if power.reason is not None:
        return f"power: not measured: {power.reason}{mode}"
    values = ((power.watts, "now"), (power.mean_w, "on average"), (power.idle_w, "idle"))
    words = ", ".join(f"{watts:.2f} W {when}" for watts, when in values if watts is not None)
    return f"power: {words or 'not known now'} ({' + '.join(power.total_of)}){mode}"


def _energy_estimates(estimates: EstimatesJudged) -> list[str]:
    """Return a line with the energy above idle, as measured and as the answers estimated it; none if neither is."""
    if estimates.measured_j is None and not estimates.answers:
        return []
    error = "" if estimates.measured_half_j is None else f" ± {figure(estimates.measured_half_j)}"
    measured = "nothing" if estimates.measured_j is None else f"{figure(estimates.measured_j)}{error} J"
    estimated = (
        None
        if estimates.answers is None or estimates.unestimated is None
        else estimates.answers - estimates.unestimated
    )
    ratio = "" if estimates.ratio is None else f"; ratio of measured to estimated: {estimates.ratio:.2f}"
    return [
        f"energy above idle: {measured} measured, {figure(estimates.estimated_j)} J estimated for "
        f"{count(estimated)} of {count(estimates.answers)} answers{ratio}"
    ]


def fault_lines(reply: StatusReply) -> list[str]:
    """Return a line for each fault: a rejected reload, an engine's process that ended, a file that is left out."""
    lines, last = [], reply.last_reload
    if last is not None and last.refused is not None:
        lines.append(f"the last reload, {duration(last.ago_s)} ago, was rejected: {last.refused}")
    for host in reply.hosts:
        if host.reason is not None:
            lines.append(f"engine host for {host.backend} is {host.state}: {host.reason}")
        elif host.restarts:
            ended = f"; {duration(host.last_end_ago_s)} ago: {host.last_end}" if host.last_end is not None else ""
            lines.append(f"engine host for {host.backend} is {host.state}, restarts: {host.restarts}{ended}")
    return [*lines, *(f"left out: {line}" for line in reply.broken)]


def outcomes(counts: dict[str, int]) -> str:
    """Return the number of successful requests, then of each error code, the most frequent first."""
    order = sorted(counts, key=lambda outcome: (outcome != "ok", -counts[outcome], outcome))
    return ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in order) or "none yet"


def count(value: int | None) -> str:
    """Return a whole number, or a dash if it is unknown."""
    return "-" if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """Return a duration in words: 93784 s -> 1 day, 2:03:04; a dash if it is unknown."""
    return "-" if seconds is None else str(timedelta(seconds=int(seconds)))


def figure(value: float | None) -> str:
    """Return a number with three significant digits, or a dash if it is unknown."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
