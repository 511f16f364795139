"""Windows as Markdown: what was measured, and the ratios that the project promises something about."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np

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
    yield from table(
        ("within a round: median (its 95 % interval by bootstrap)", "target", "measured"), list(_ratios(measured, plan))
    )


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
    """Yield each comparison of the daemon; both sides of one are always of the same round."""
    servers = [what for what in dict.fromkeys(what for what, _ in measured.windows) if what not in ("bare", "daemon")]
    fewest = plan.clients[0]
    for name in servers:
        added = _compare(measured, ("daemon", fewest), (name, fewest), lambda a, b: a.p50_ms - b.p50_ms, "+.2f")
        target = "at most +0.10" if name == "naive" and fewest == 1 else ""
        yield [f"{_named('daemon', fewest)}: p50 less {name}'s, ms", target, added]
    for name in servers:
        for clients in plan.clients:
            cpu = _compare(
                measured, ("daemon", clients), (name, clients), lambda a, b: a.server_cpu_ms / b.server_cpu_ms
            )
            target = f"at most {1.2 if measured.model == 's' else 1.1:.2f}" if name == "naive" else ""
            yield [f"{_named('daemon', clients)}: CPU a request / {name}'s", target, cpu]
    for name in servers:
        for clients in plan.clients:
            rate = _compare(
                measured, ("daemon", clients), (name, clients), lambda a, b: a.requests_per_s / b.requests_per_s
            )
            yield [f"{_named('daemon', clients)}: requests/s / {name}'s", "at least 1.05" * (name == "mosec"), rate]


def _named(what: str, at_once: int) -> str:
    return f"{what}, {at_once} {'thread' if what == 'bare' else 'client'}{'s' * (at_once > 1)}"


def _compare(
    measured: Measured,
    ours: tuple[str, int],
    theirs: tuple[str, int],
    figure: Callable[[Window, Window], float],
    form: str = ".2f",
) -> str:
    values = [figure(a, b) for a, b in zip(measured.of(*ours), measured.of(*theirs), strict=True)]
    return interval(values, form)


def interval(values: Sequence[float], form: str) -> str:
    """Return the median of (rounds,) values with its 95 % interval: percentiles of 2,000 drawn anew."""
    drawn = np.random.default_rng(0).choice(np.asarray(values), (2000, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    return f"{np.median(values):{form}} ({low:{form}} to {high:{form}})"
