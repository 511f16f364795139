"""A daemon's status as lines and tables, which `jetsel status` prints once and `jetsel top` again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.wire import StatusReply
    from jetsel.wire.power import BatteryStatus, EstimatesJudged, PowerStatus
    from jetsel.wire.status import (
        DriftStatus,
        EdgeServerStatus,
        EdgeStatus,
        FamilyStatus,
        FrontStatus,
        HostStatus,
        QueueStatus,
        ReloadStatus,
        StageTimes,
    )

STAGES = (
    "queue",
    "decode",
    "features",
    "choice",
    "waiting",
    "input",
    "inference",
    "total",
)  # in the order of a request
SHOWN_OF_HASH = 12  # hexadecimal digits, as git shows of its own


def headline(reply: StatusReply) -> str:
    """Return the daemon's version, state, process and memory."""
    memory = "" if reply.resident_mb is None else f", {reply.resident_mb:.0f} MB resident"
    state = f"{reply.state} ({reply.progress})" if reply.progress else reply.state
    return f"jetsel {reply.version} is {state}: process {reply.pid or '-'}, up {duration(reply.uptime_s)}{memory}"


def details(reply: StatusReply) -> Iterator[str | Table]:
    """Yield all that stands below the headline: lines and tables."""
    if reply.endpoints:
        yield f"listens on {', '.join(reply.endpoints)}; configured by {reply.config or 'its defaults alone'}"
    yield from general_lines(reply)
    yield from [table for table in [stages_table(reply.stages_ms)] if table is not None]
    for family in reply.families:
        yield models_table(family)
        yield from family_lines(family)
    yield from power_lines(reply.power)
    yield from energy_tables(reply.power)
    yield from (f"left out: {line}" for line in reply.broken)


def general_lines(reply: StatusReply) -> list[str]:
    """Return what there is to say of the daemon as a whole: requests, queue, reloads, engine hosts."""
    lost = f"; {reply.lost_replies:,} replies lost to clients that do not read" if reply.lost_replies else ""
    lines = [f"requests: {outcomes(reply.requests)}{lost}", _queue_line(reply.queue)]
    if reply.last_reload is not None:
        lines.append(_reload_line(reply.reloads, reply.last_reload))
    lines += [line for host in reply.hosts for line in _host_lines(host)]
    return lines if reply.edge is None else [*lines, *edge_lines(reply.edge)]


def edge_lines(edge: EdgeStatus) -> list[str]:
    """Return how the edge fares: the one in use, the others, and what all of them were asked."""
    from jetsel.cli.terminal import milliseconds

    carried = f"{millions(edge.sent_bytes)} MB sent, {millions(edge.received_bytes)} MB received"
    lines = [f"edge: {_server_words(edge)}"]
    if edge.network_ms is not None and edge.usual_bytes is not None:
        lines[0] += f" with {edge.usual_bytes / 1e3:.0f} kB"
    if len(edge.servers) > 1:
        others = [server for server in edge.servers if server.url != edge.url]
        lines += [f"  not in use: {_server_words(server)}; runs: {outcomes(server.runs)}" for server in others]
        lines.append(f"  hand-overs: {count(edge.handovers)}")
    lines.append(f"  runs: {outcomes(edge.runs)}; {carried}")
    for model in edge.models:
        known = "not tried yet" if model.mean_ms is None else f"{milliseconds(model.mean_ms)} ms there"
        lines.append(f"  {model.name} ({model.remote}): {model.reason or known}")
    return lines


def _server_words(server: EdgeStatus | EdgeServerStatus) -> str:
    from jetsel.cli.terminal import milliseconds

    way = ""
    if server.network_ms is not None:
        way = f": {milliseconds(server.network_ms)} ± {milliseconds(server.network_deviation_ms)} ms round trip"
    return f"{server.url} {'can be asked' if server.reason is None else f'is away ({server.reason})'}{way}"


def _queue_line(queue: QueueStatus) -> str:
    megabytes = f"{millions(queue.bytes)} of {millions(queue.most_bytes)} MB"
    megapixels = f"{millions(queue.pixels)} of {millions(queue.most_pixels)} megapixels"
    known = None if queue.waiting is None or queue.working is None else queue.waiting + queue.working
    waiting = f"{count(known)} of {count(queue.most_requests)} requests, {count(queue.waiting)} waiting"
    return f"queue: {waiting}; {megabytes}, {megapixels}"


def _reload_line(reloads: dict[str, int], last: ReloadStatus) -> str:
    done = f"rejected: {last.refused}" if last.refused else f"changed: {', '.join(last.changed) or 'nothing'}"
    return f"reloads: {outcomes(reloads)}; the last, {duration(last.ago_s)} ago, {done}"


def _host_lines(host: HostStatus) -> list[str]:
    process = "" if host.pid is None else f" as process {host.pid}"
    reason = "" if host.reason is None else f": {host.reason}"
    restarts = f", {host.restarts} restart{'s' * (host.restarts != 1)}" if host.restarts else ""
    lines = [f"engine host for {host.backend}: {host.state}{process}{restarts}{reason}"]
    if host.last_end is not None and host.last_end_ago_s is not None and host.reason is None:
        lines.append(f"  {duration(host.last_end_ago_s)} ago: {host.last_end}")
    return lines


def stages_table(stages: StageTimes) -> Table | None:
    """Return the percentiles of each stage, None if nothing was answered of late."""
    from jetsel.cli.terminal import milliseconds, table

    if not stages.answers:
        return None
    shown = table("", *(f">{name}" for name in STAGES))
    since = "" if stages.since_s is None else f" ({duration(stages.since_s)})"
    answers = f"{stages.answers:,} answer{'s' * (stages.answers != 1)}"
    shown.title = f"where the last {answers}{since} spent their time, in ms"
    columns = [getattr(stages, name) for name in STAGES]
    for share in ("p50", "p95", "p99"):
        shown.add_row(share, *(milliseconds(None if c is None else getattr(c, f"{share}_ms")) for c in columns))
    return shown


def models_table(family: FamilyStatus) -> Table:
    """Return the models, cheapest first: what runs took, and how often another had to follow."""
    from jetsel.cli.terminal import milliseconds, table

    shown = table("model", "runs on", "state", ">load", ">runs", ">escalated", ">p50", ">p95", ">p99")
    shown.columns[0].no_wrap = True
    shown.title = (
        f"family {family.name}: {count(family.classes)} classes; times of the last load and of recent runs in ms"
    )
    for model in family.models:
        state = model.state if model.reason is None else f"{model.state}: {model.reason}"
        times = (milliseconds(ms) for ms in (model.p50_ms, model.p95_ms, model.p99_ms))
        what = (model.name, model.backend, state)
        load = milliseconds(model.load_ms)
        shown.add_row(*what, load, count(model.runs), share(model.escalations, model.runs), *times)
    return shown


def family_lines(family: FamilyStatus) -> list[str]:
    """Return how a family's answers are decided."""
    names = family.default_policy
    same = len(set(names.values())) == 1
    policy = next(iter(names.values())) if same else ", ".join(f"{value} for {key}" for key, value in names.items())
    more_than_one = f"escalated: {count(family.escalated)} of {count(family.answers)} answers took more than one model"
    known = [] if family.objective is None else [f"to save {family.objective}"]
    if family.calibration_identity is not None:
        known.append(f"sha256 {family.calibration_identity.sha256[:SHOWN_OF_HASH]}")
    calibration = (family.calibration or "none") + (f" ({', '.join(known)})" if known else "")
    return [
        *([f"{more_than_one} ({share(family.escalated, family.answers)})"] if family.answers else []),
        f"policy: {policy} ({family.because})",
        *([] if family.front is None else _point_in_use(family.front)),
        f"a request may also name: {', '.join(family.policies)}",
        f"fallback if in doubt: {family.fallback or 'refuse'}; calibration: {calibration}",
        *(f"not offered: {name} {reason}" for name, reason in family.not_offered.items()),
        *_promises(family),
        *([] if family.drift is None else [f"drift: {_drift(family.drift)}"]),
    ]


def _point_in_use(front: FrontStatus) -> list[str]:
    """Return the operating point that answered last, and how long the cheapest has been in use."""
    from jetsel.cli.terminal import milliseconds

    points = {point.policy: (number, point) for number, point in enumerate(front.points, 1)}
    if len(points) < 2:
        return []
    words = front.last or "none yet"
    number, point = points.get(front.last or "", (0, None))
    if point is not None and point.accuracy is not None:
        words += f", number {number} of {len(points)}: {point.accuracy:.1%} right in {milliseconds(point.mean_ms)} ms"
    lasts = f"; cheapest in use for {duration(front.cheapest_s)}" if front.cheapest_s else ""
    return [f"operating point: {words}{lasts}"]


def _promises(family: FamilyStatus) -> list[str]:
    """Return the promise that requests get by default, and the share of images that each level answers."""
    default = family.wrong_at_most
    has_default = default is not None and default < 1
    if not has_default and not family.promises:
        return []
    known = ", ".join(f"{figure(one.wrong_at_most)} answers {share(one.answered, 1)}" for one in family.promises)
    words = f"{default:g} by default" if has_default else "none by default"
    return [f"promised share of wrong answers: {words}; {known or 'none is calibrated: jetsel calibrate IMAGES'}"]


def _drift(drift: DriftStatus) -> str:
    """Whether photographs are still those of the calibration."""
    if drift.hint is not None or drift.reason is not None:
        return str(drift.hint or drift.reason)
    highest = (
        ""
        if drift.highest is None
        else f"; {drift.highest} changed most (index {figure(drift.indices.get(drift.highest))})"
    )
    return f"none in {count(drift.photographs)} images{highest}"


def outcomes(counts: dict[str, int]) -> str:
    """Return how many ended well, and then in each error code, the most frequent first."""
    order = sorted(counts, key=lambda outcome: (outcome != "ok", -counts[outcome], outcome))
    return ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in order) or "none yet"


def count(value: int | None) -> str:
    """Return a number, or a dash if it is not known."""
    return "-" if value is None else f"{value:,}"


def millions(value: int | None) -> str:
    """Return bytes or pixels in millions, or a dash if they are not known."""
    return figure(None if value is None else value / 1e6)


def share(part: float | None, whole: int | None) -> str:
    """Return a share in percent, a dash if there is nothing to have a share of."""
    return f"{part / whole:.0%}" if whole and part is not None else "-"


def duration(seconds: float | None) -> str:
    """Return a time span in the two largest units that matter: 93784 s -> 1 d 2 h; a dash if it is not known."""
    if seconds is None:
        return "-"
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def power_lines(power: PowerStatus) -> list[str]:
    """Return what is to be said of the board's power and of the choosing's."""
    lines = [_total(power)]
    lines += _state(power)
    lines += [f"  rail {rail.name} is not read: {rail.reason}" for rail in power.dropped]
    if power.idle_reason not in (None, power.reason):
        lines.append(f"  energy above idle is not measured: {power.idle_reason}")
    if power.budget is not None:
        lines.append(f"power budget: {figure(power.budget.budget_w)} W; it {power.budget.state}")
    if power.battery.percent is not None:
        lines.append(_battery(power.battery))
    lines += [f"outside the conditions of the calibration: {reason}" for reason in power.out_of_conditions]
    if power.chooser_j is not None:
        share = "" if power.chooser_share is None else f", {power.chooser_share:.0%} of the energy of choosing and runs"
        lines.append(f"choosing took {joules(power.chooser_j)}{share}")
    return lines + _judged(power.judged)


def energy_tables(power: PowerStatus) -> list[Table]:
    """Return what each model and each policy took, if any has been at work."""
    from jetsel.cli.terminal import table

    found = []
    if power.models:
        models = table("model", "family", ">images", ">energy", ">mJ each")
        models.title = "estimated energy above idle by model"
        for model in power.models:
            took = (joules(model.joules), figure(model.mean_mj))
            models.add_row(model.model, model.family, count(model.photographs), *took)
        found.append(models)
    if power.policies:
        policies = table("policy", "family", ">answers", ">energy", ">mJ each", ">saved")
        policies.title = "estimated energy above idle by policy, choosing included"
        for policy in power.policies:
            took = (joules(policy.joules), figure(policy.mean_mj))
            policies.add_row(policy.policy, policy.family, count(policy.answers), *took, joules(policy.saved_j))
        found.append(policies)
    return found


def joules(value: float | None) -> str:
    """Return an energy with three digits that mean something, or a dash if it is not known."""
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
        parts.append(f"{power.mean_w:.2f} W on average")
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
    known = None if judged.answers is None or judged.unestimated is None else judged.answers - judged.unestimated
    ratio = "" if judged.ratio is None else f"; ratio of measured to estimated: {judged.ratio:.2f}"
    return [
        f"above idle since the start: {measured} measured, {joules(judged.estimated_j)} estimated for "
        f"{count(known)} of {count(judged.answers)} answers{ratio}"
    ]


def _battery(battery: BatteryStatus) -> str:
    """What the battery holds, in words."""
    does = {True: "discharging", False: "not discharging", None: str(battery.reason)}[battery.discharging]
    return f"battery: {battery.percent:.0f} %, {does}"


def _state(power: PowerStatus) -> list[str]:
    """The board's own state on one line, if it tells any of it."""
    parts = [] if power.gpu_load is None else [f"GPU load {power.gpu_load:.0%}"]
    parts += [f"{name} {celsius:.0f} °C" for name, celsius in (power.temperatures_c or {}).items()]
    parts += [] if power.jetpack is None else [f"JetPack {power.jetpack}"]
    return [f"board: {', '.join(parts)}"] if parts else []


def figure(value: float | None) -> str:
    """Return a number with three digits that mean something, or a dash if it is not known."""
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
