"""Windows as Markdown: what was measured, and the ratios that the project promises something about."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from benchmarks.rounds import Measured, Plan
from benchmarks.window import Window

HEADINGS = ("p50 ms", "p99 ms", "requests/s", "CPU ms a request, server", "CPU ms a request, generator")
FIGURES: tuple[Callable[[Window], float], ...] = (
    lambda w: w.p50_ms,
    lambda w: w.p99_ms,
    lambda w: w.requests_per_s,
    lambda w: w.server_cpu_ms,
    lambda w: w.generator_cpu_ms,
)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table whose first column is text and the others figures."""
    yield f"| {' | '.join(headings)} |"
    yield f"|---|{'---:|' * (len(headings) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def report(measured: Measured, plan: Plan) -> Iterator[str]:
    """Yield the tables of one model."""
    yield f"\n## Model {measured.model}\n"
    yield from table(("median of the rounds", *HEADINGS), [_row(measured, *key) for key in _keys(measured, plan)])
    yield ""
    yield from table(("within a round: median (least to most)", "target", "measured"), list(_ratios(measured, plan)))


def _keys(measured: Measured, plan: Plan) -> list[tuple[str, int]]:
    """Return what was measured in the order in which it is read: by server, then by clients."""
    servers = dict.fromkeys(what for what, _ in measured.windows if what != "bare")
    threads = dict.fromkeys(at_once for what, at_once in measured.windows if what == "bare")
    return [*(("bare", n) for n in threads), *((name, clients) for name in servers for clients in plan.clients)]


def _row(measured: Measured, what: str, at_once: int) -> list[str]:
    windows = measured.of(what, at_once)
    values = [statistics.median(figure(window) for window in windows) for figure in FIGURES]
    p50, p99, rate, server, generator = (f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in values)
    return [_named(what, at_once), p50, p99, rate, server, "-" if what == "bare" else generator]


def _ratios(measured: Measured, plan: Plan) -> Iterator[list[str]]:
    """Yield each comparison; both sides of one are always of the same round."""
    servers = list(dict.fromkeys(what for what, _ in measured.windows if what != "bare"))
    fewest = plan.clients[0]
    for name in servers:
        added = _compare(measured, (name, fewest), ("bare", 1), lambda a, b: a.p50_ms - b.p50_ms, "+.2f")
        target = "at most +0.4" if name == "daemon" and fewest == 1 else ""
        yield [f"{_named(name, fewest)}: p50 less the bare loop's, ms", target, added]
    for name in servers:
        for clients in plan.clients:
            cpu = _compare(measured, (name, clients), ("bare", 1), lambda a, b: a.server_cpu_ms / b.server_cpu_ms)
            target = "at most 1.15" if name == "daemon" else ""
            yield [f"{_named(name, clients)}: CPU a request / the bare loop's", target, cpu]
    for name in servers:
        for clients in plan.clients[1:]:
            rate = _compare(measured, (name, clients), ("bare", plan.threads), _rate)
            yield [f"{_named(name, clients)}: requests/s / the bare loop's on {plan.threads} threads", "", rate]
    for other, target in (("mosec", "over 1"), ("other", "")):
        for clients in plan.clients if other in servers else ():
            rate = _compare(measured, ("daemon", clients), (other, clients), _rate)
            yield [f"{_named('daemon', clients)}: requests/s / {other}'s", target, rate]
    if "other" in servers:
        for clients in plan.clients:
            ours, theirs = ("daemon", clients), ("other", clients)
            p50 = _compare(measured, ours, theirs, lambda a, b: a.p50_ms / b.p50_ms)
            cpu = _compare(measured, ours, theirs, lambda a, b: a.server_cpu_ms / b.server_cpu_ms)
            yield [f"{_named(*ours)}: p50 / other's", "", p50]
            yield [f"{_named(*ours)}: CPU a request / other's", "", cpu]


def _named(what: str, at_once: int) -> str:
    return f"{what}, {at_once} {'thread' if what == 'bare' else 'client'}{'s' * (at_once > 1)}"


def _rate(ours: Window, theirs: Window) -> float:
    return ours.requests_per_s / theirs.requests_per_s


def _compare(
    measured: Measured,
    ours: tuple[str, int],
    theirs: tuple[str, int],
    figure: Callable[[Window, Window], float],
    form: str = ".2f",
) -> str:
    values = [figure(a, b) for a, b in zip(measured.of(*ours), measured.of(*theirs), strict=True)]
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
