"""What `jetsel status` and `jetsel top` both say of a daemon: its queue, stages, engine hosts and last reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from jetsel.wire import FamilyStatus, HostStatus, ModelStatus, StageTimes, StatusReply

STAGES = ("queue", "decode", "features", "choice", "waiting", "inference", "total")  # in the order of a request


def queue_line(reply: StatusReply) -> str:
    """Return what is in the queue, and what it may hold as far as the daemon tells."""
    queue = reply.queue
    if queue is None:  # a daemon of before tells no more
        return f"queue: {reply.in_queue} requests of {reply.queued_bytes / 1e6:.1f} MB"
    return (
        f"queue: {reply.in_queue} of {queue.most_requests:,} requests, {queue.waiting} waiting; "
        f"{of_most(queue.bytes, queue.most_bytes)} MB, {of_most(queue.pixels, queue.most_pixels)} megapixels"
    )


def of_most(value: float, most: float) -> str:
    """Return a share of a limit, both in millions."""
    return f"{value / 1e6:.1f} of {most / 1e6:g}"


def stages_table(stages: StageTimes | None, title: str) -> Table | None:
    """Return the percentiles of each stage, None where nothing is known. title: of what, with {} for the answers."""
    from jetsel.cli.terminal import milliseconds, table

    if stages is None or not stages.answers:
        return None
    shown = table("", *(f">{name}" for name in STAGES))
    since = "" if stages.since_s is None else f" ({duration(stages.since_s)})"
    shown.title = title.format(f"{stages.answers:,} answer{'s' * (stages.answers != 1)}{since}")
    columns = [getattr(stages, name) for name in STAGES]
    for share in ("p50", "p95", "p99"):
        shown.add_row(share, *(milliseconds(None if c is None else getattr(c, f"{share}_ms")) for c in columns))
    return shown


def escalated(model: ModelStatus) -> str:
    """Return how often another model ran after this one, a dash where it has not run."""
    return f"{model.escalations / model.runs:.0%}" if model.runs else "-"


def escalations_line(family: FamilyStatus) -> str | None:
    """Return how many of a family's answers took more than one model, None where it gave none."""
    if not family.answers:
        return None
    share = f"{family.escalated / family.answers:.0%}"
    return f"escalated: {family.escalated:,} of {family.answers:,} answers took more than one model ({share})"


def host_lines(host: HostStatus) -> Iterator[str]:
    """Give how an engine host fares, and how the one before it ended."""
    process = "" if host.pid is None else f" as process {host.pid}"
    reason = "" if host.reason is None else f": {host.reason}"
    restarts = f", {count(host.restarts, 'restart')}" if host.restarts else ""
    yield f"engine host for {host.backend}: {host.state}{process}{restarts}{reason}"
    if host.last_end is not None and host.last_end_ago_s is not None and host.reason is None:
        yield f"  {duration(host.last_end_ago_s)} ago: {host.last_end}"


def reload_line(reply: StatusReply) -> str | None:
    """Return how many reloads there were and how the last one ended, None where there was none."""
    last = reply.last_reload
    if last is None:
        return None
    done = f"refused: {last.refused}" if last.refused else f"changed: {', '.join(last.changed) or 'nothing'}"
    return f"reloads: {outcomes(reply.reloads)}; the last, {duration(last.ago_s)} ago, {done}"


def outcomes(counts: dict[str, int]) -> str:
    """Return how many ended well, and then in each error code, the most frequent first."""
    order = sorted(counts, key=lambda outcome: (outcome != "ok", -counts[outcome], outcome))
    return ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in order) or "none yet"


def count(number: int, what: str) -> str:
    """Return a number of things: 1 restart, 2 restarts."""
    return f"{number} {what}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Return a time span in the two largest units that matter: 93784 s -> 1 d 2 h."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
