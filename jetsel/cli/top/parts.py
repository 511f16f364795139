"""The parts of the page that `jetsel top` shows, each as lines."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from jetsel.cli.faring import STAGES, count, duration, host_lines, of_most, outcomes, reload_line
from jetsel.cli.power_status import figure, joules, power_lines
from jetsel.cli.terminal import milliseconds
from jetsel.cli.top.lines import bar, columns, folded, line

if TYPE_CHECKING:
    from rich.text import Text

    from jetsel.cli.top.watching import Seen
    from jetsel.wire import FamilyStatus, ModelStatus, StatusReply

LATE_S = 1.0  # past the interval: from then on it is told that an answer is awaited
WIDE = 100  # characters from which models have more columns
STYLES = {"ready": "", "loading": "yellow", "unavailable": "red"}


def head(seen: Seen, interval_s: float, width: int, *, is_live: bool) -> list[Text]:
    """Who is watched, and whether it answers."""
    reply = seen.reply
    memory = f", {reply.resident_mb:.0f} MB" if reply.resident_mb is not None else ""
    state = f"{reply.state} ({reply.progress})" if reply.progress else reply.state
    who = f"jetsel {reply.version} {state}, process {reply.pid}, up {duration(reply.uptime_s)}{memory}"
    lines = [line(f"{who}; {clock(seen.at)}, every {interval_s:g} s{', q ends' * is_live}", "bold")]
    age_s = time.monotonic() - seen.at_s
    if seen.gone is not None or age_s > interval_s + LATE_S:
        reason = "" if seen.gone is None else f": {seen.gone}"
        lines += folded(f"no answer since {clock(seen.at)}, for {duration(age_s)}{reason}", width, "bold red")
    return lines


def traffic(seen: Seen) -> list[Text]:
    """Requests a second and so far, and the queue with its limits."""
    reply, rates = seen.reply, seen.rates
    ended = ", ".join(f"{hz:.1f} {outcome}" for outcome, hz in _largest_first(rates.outcomes) if hz > 0)
    over = "since the start" if rates.since_start else f"over {rates.seconds:.1f} s"
    lost = f"; {reply.lost_replies:,} replies lost" if reply.lost_replies else ""
    energy = "" if rates.energy_mj is None else f", {figure(rates.energy_mj)} mJ an answer"
    lines = [
        line(f"requests  {rates.requests:.1f}/s {over}{energy}{': ' * bool(ended)}{ended}"),
        line(f"so far    {outcomes(reply.requests)}{lost}", "red" if rates.lost > 0 else ""),
    ]
    queue = reply.queue
    if queue is None:
        return [*lines, line(f"queue     {reply.in_queue} requests, {reply.queued_bytes / 1e6:.1f} MB")]
    work = f"{queue.waiting} waiting, {queue.working} in work, {count(queue.workers, 'worker')}"
    held = (
        ("queue", reply.in_queue, queue.most_requests, f"{reply.in_queue} of {queue.most_requests:,}: {work}"),
        ("bytes", queue.bytes, queue.most_bytes, f"{of_most(queue.bytes, queue.most_bytes)} MB"),
        ("pixels", queue.pixels, queue.most_pixels, f"{of_most(queue.pixels, queue.most_pixels)} megapixels"),
    )
    return [*lines, *(line(f"{name:10}{bar(value, most)} {said}") for name, value, most, said in held)]


def stages(reply: StatusReply) -> list[Text]:
    """Where the time of the recent answers went."""
    found = reply.stages_ms
    if found is None or not found.answers:
        return []
    times = [getattr(found, name) for name in STAGES]
    since = "" if found.since_s is None else f" in {duration(found.since_s)}"
    rows = [["ms", *STAGES]] + [
        [share, *(milliseconds(None if stage is None else getattr(stage, f"{share}_ms")) for stage in times)]
        for share in ("p50", "p95", "p99")
    ]
    first, *rest = columns(rows)
    first.append(f"   ({found.answers:,}{since})", "not bold dim")
    return [first, *rest]


def models(seen: Seen, width: int, most: int) -> list[Text]:
    """The models that were served, cheapest first, no more than `most` of them."""
    pairs = [(family, model) for family in seen.reply.families for model in family.models]
    wide = ["runs on", "runs"] if width >= WIDE else []
    titles = ["model", "state", *wide, "runs/s", "escalated", "p50 ms", "p95 ms", "p99 ms", "mJ each"]
    shown = pairs if len(pairs) <= most else pairs[: most - 1]
    lines = columns([titles, *(_model(seen, family, model, bool(wide)) for family, model in shown)], 3 if wide else 2)
    for (_, model), text in zip(shown, lines[1:], strict=True):
        text.stylize(STYLES.get(model.state, ""))
    if len(shown) < len(pairs):
        lines.append(line(f"and {len(pairs) - len(shown)} more: see jetsel status", "dim"))
    return lines


def _model(seen: Seen, family: FamilyStatus, model: ModelStatus, is_wide: bool) -> list[str]:
    key = (family.name, model.name)
    name = model.name if len(seen.reply.families) == 1 else f"{family.name}/{model.name}"
    share = seen.rates.escalated.get(key)
    power = seen.reply.power
    taken = [] if power is None else [e.mean_mj for e in power.models if (e.family, e.model) == key]
    return [
        name,
        model.state,
        *([model.backend, f"{model.runs:,}"] if is_wide else []),
        f"{seen.rates.runs.get(key, 0.0):.1f}",
        "-" if share is None else f"{share:.0%}",
        *(milliseconds(ms) for ms in (model.p50_ms, model.p95_ms, model.p99_ms)),
        figure(taken[0] if taken else None),
    ]


def notes(reply: StatusReply, width: int) -> list[Text]:
    """What else there is to know: models that do not run, engine hosts, power, reloads, and what was left out."""
    said = [
        (f"{model.name} is unavailable: {model.reason}", "red")
        for family in reply.families
        for model in family.models
        if model.reason is not None
    ]
    for host in reply.hosts:
        style = "" if host.state in ("running", "idle") else "red"
        said += [(text, style) for text in host_lines(host)]
    if reply.queue is not None and reply.queue.clients:
        said.append((f"under way: {', '.join(f'{c.requests} of {c.name}' for c in reply.queue.clients)}", ""))
    if reply.power is not None:
        said += [(text, "") for text in power_lines(reply.power) if not text.startswith("  rail")]
    reloads = reload_line(reply)
    if reloads is not None:
        said.append((reloads, "red" if reply.last_reload and reply.last_reload.refused else ""))
    said += [(f"left out: {text}", "red") for text in reply.broken]
    return [piece for text, style in said for piece in folded(text, width, style)]


def policies(reply: StatusReply) -> list[Text]:
    """What the answers of each policy took, where that is measured."""
    found = [] if reply.power is None else reply.power.policies
    if not found:
        return []
    rows = [
        [
            policy.policy if len(reply.families) == 1 else f"{policy.family}: {policy.policy}",
            f"{policy.answers:,}",
            joules(policy.joules),
            figure(policy.mean_mj),
            figure(policy.mean_w),
            joules(policy.saved_j),
        ]
        for policy in found
    ]
    return columns([["policy", "answers", "energy", "mJ each", "mean W", "saved"], *rows])


def clock(at: datetime) -> str:
    """Return a time of day as people write it."""
    return f"{at:%H:%M:%S}"


def _largest_first(shares: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])
