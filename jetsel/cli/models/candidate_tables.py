"""What became of candidates, as tables and sentences for the terminal and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetsel.calibrate.report import Listing
from jetsel.cli.terminal import milliseconds, table

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.calibrate.candidates import Judged
    from jetsel.calibrate.findings import Interval
    from jetsel.calibrate.gains import Gain
    from jetsel.cli.models.optimizing import Found


def tables_of(found: Found) -> list[Listing]:
    """Return the models, what cascades gain, how each candidate was made, and those that are not there."""
    recipes = [[name, fact.recipe] for name, fact in found.facts.items() if fact.recipe is not None]
    failed = [[name, reason] for name, reason in found.failed.items()]
    models = ["top-1 %", "points under it", "agrees %", "ms", "MB", "MB gzipped", "million operations"]
    engines = ["TensorRT ms"] if isinstance(found.engines, dict) else []
    gains = [
        "within ms",
        "without, top-1 %",
        "with, top-1 %",
        "points",
        "as accurate in, times",
        "points then",
        "rungs",
    ]
    return [
        Listing(
            f"Models beside {found.verdict.parent}, on {found.verdict.photographs:,} photographs held out",
            ["model", *models, *engines, "wanted by"],
            [_row(one, found) for one in found.verdict.models],
            (len(models) + len(engines) + 1,),
        ),
        Listing("Cascades without and with candidates", gains, [_gain_row(gain) for gain in found.verdict.gains], (6,)),
        Listing("How each was made", ["candidate", "recipe"], recipes, (1,)),
        Listing("Not made", ["candidate", "reason"], failed, (1,)),
    ]


def drawn(listing: Listing) -> Table:
    """Return a table for the terminal."""
    _, columns, rows, text = listing
    shown = table(columns[0], *(name if place in text else f">{name}" for place, name in enumerate(columns[1:], 1)))
    shown.title = listing.caption
    for row in rows:
        shown.add_row(*row)
    return shown


def sentences(found: Found) -> list[str]:
    """Say which candidates are wanted, and what that gives."""
    verdict = found.verdict
    new = [one for one in verdict.models if one.name not in verdict.served]
    if not verdict.entered:
        said = [f"none of {len(new)} candidates is wanted: each is slower, or right less often, than what is there"]
    else:
        said = [f"{len(verdict.entered)} of {len(new)} candidates are wanted: {', '.join(verdict.entered)}"]
        said += [_gain_sentence(gain) for gain in verdict.gains[:1]]
    said.append(f"Algorithm 1 chooses {' -> '.join(verdict.algorithm_1)}")
    if isinstance(found.engines, str):
        said.append(f"no times by TensorRT: {found.engines}")
    if found.noisy is not None:
        said.append(f"the times are noisy: {found.noisy}")
    return said


def _row(one: Judged, found: Found) -> list[str]:
    fact = found.facts[one.name]
    half = 50 * (one.top1_interval.high - one.top1_interval.low)
    places = {"front": one.in_front, "Algorithm 1": one.in_algorithm_1, "cascade": one.in_cascade}
    wanted = ", ".join(name for name, is_there in places.items() if is_there) or "nothing"
    engines = [] if isinstance(found.engines, str) else [_device_ms(found.engines.get(one.name))]
    return [
        one.name,
        f"{100 * one.top1:.2f} ± {half:.2f}",
        f"{one.drop:+.2f} ({_to(one.drop_interval)})",
        f"{100 * one.agreement:.1f}",
        milliseconds(one.mean_ms),
        f"{fact.bytes / 1e6:.2f}",
        f"{fact.gzipped_bytes / 1e6:.2f}",
        "-" if fact.operations is None else f"{fact.operations / 1e6:.1f}",
        *engines,
        one.left_out or wanted,
    ]


def _device_ms(told: float | str | None) -> str:
    return milliseconds(told) if isinstance(told, float) else "-"


def _gain_row(gain: Gain) -> list[str]:
    return [
        milliseconds(gain.budget_ms),
        f"{100 * gain.before:.2f}",
        f"{100 * gain.after:.2f}",
        f"{gain.points:+.2f} ({_to(gain.points_interval)})",
        f"{gain.time_ratio:.2f}",
        f"{gain.time_points:+.2f} ({_to(gain.time_interval)})",
        " -> ".join(gain.rungs),
    ]


def _gain_sentence(gain: Gain) -> str:
    return (
        f"within {milliseconds(gain.budget_ms)} ms, the time of the best single model, the best cascade is right on "
        f"{100 * gain.before:.2f} % without them and on {100 * gain.after:.2f} % with them ({gain.points:+.2f} points, "
        f"{_to(gain.points_interval)}); one as accurate takes {gain.time_ratio:.2f} times the time"
    )


def _to(interval: Interval) -> str:
    return f"{interval.low:+.2f} to {interval.high:+.2f}"
