"""What a comparison means, in sentences for people who do not read tables."""

from __future__ import annotations

from collections.abc import Mapping

from jetsel.calibrate.findings import Chain, Lift, Multiplexing, Result
from jetsel.calibrate.report.words import joined
from jetsel.policies.registry import KINDS
from jetsel.wire import Criterion

LEARNED = tuple(kind.name for kind in KINDS)


def sentences(
    policies: Mapping[str, Result],
    bounds: Mapping[str, Result],
    best_single: str,
    chain: Chain,
    criterion: Criterion,
    labels_from: str | None,
    multiplexing: Multiplexing | None = None,
) -> list[str]:
    """Return the findings of one criterion, the most useful first.

    labels_from: the model whose answers stood for labels; then what is right is what agrees with it.
    """
    said = [_beside_single(policies[name], best_single, criterion) for name in LEARNED if name in policies]
    better = [name for name in LEARNED if name in policies and _dominates(policies[name], policies["chain"], criterion)]
    if better:
        said.append(f"{joined(better)} {'is' if len(better) == 1 else 'are'} both faster and more accurate than chain.")
    said += _beside_coin([policies[name] for name in LEARNED if name in policies], criterion)
    single, oracle = bounds["best single"], bounds["oracle"]
    said.append(
        f"If the cheapest model that is right were known each time, {100 * oracle.share(criterion):.1f} % would be "
        f"right in {_costs(oracle)}; {best_single} alone is right on {100 * single.share(criterion):.1f} % "
        f"in {_costs(single)}."
    )
    said.append(_chooser(chain))
    if chain.lift is not None:
        said.append(_lift(chain.lift))
    if multiplexing is not None:
        said.append(_of_multiplexer(multiplexing))
    if labels_from is not None:
        said.insert(0, f"There were no labels: right means here that the answer agrees with {labels_from}'s.")
    return said


def _beside_coin(results: list[Result], criterion: Criterion) -> list[str]:
    """Which policies know anything of a photograph: those that beat models dealt at random in the same mean time."""
    gains = [(result.name, result.points_over_coin(criterion)) for result in results]
    listed = [f"{name} {points:+.1f}" for name, points in gains if points is not None]
    return [f"Compared with randomly mixing two models at equal cost, in points: {joined(listed)}."] if listed else []


def _beside_single(result: Result, best_single: str, criterion: Criterion) -> str:
    if result.always is not None:
        return f"{always_in_words(result)}."
    against = result.vs_best_single
    gained = against.points(criterion)
    said = [
        _saving(
            against.time_ratio,
            f"of {best_single}'s time",
            f"more time than {best_single}",
            f"as much time as {best_single}",
        )
    ]
    if against.energy_ratio is not None:
        said.append(_saving(against.energy_ratio, "of its energy", "more energy", "as much energy"))
    points = f"{'gains' if gained > 0 else 'loses'} {abs(gained):.1f} points"
    said.append("is as accurate" if abs(gained) < 0.05 else points)
    return f"On your photographs, {result.name} {joined(said)}."


def always_in_words(result: Result) -> str:
    """Say of a policy that asked one model about everything that it did no more than that model."""
    return f"{result.name}: always {result.always}, plus the cost of choosing"


def _saving(ratio: float, of: str, more: str, same: str) -> str:
    """What a ratio to the best single model says, in whole hundredths."""
    saved = round(100 * (1 - ratio))
    if saved == 0:
        return f"takes {same}"
    return f"saves {saved} % {of}" if saved > 0 else f"takes {-saved} % {more}"


def _costs(result: Result) -> str:
    energy = "" if result.energy_mj is None else f" and {result.energy_mj.mean:.2f} mJ"
    return f"{result.time_ms.mean:.2f} ms{energy}"


def _chooser(chain: Chain) -> str:
    energy = "" if chain.chooser_mj is None else f" and {chain.chooser_mj:.3f} mJ"
    return f"The chain's features and choice take {chain.chooser_ms:.3f} ms{energy}."


def _lift(lift: Lift) -> str:
    """Whether the premodel adds anything to chance, and what follows from it."""
    gives = (
        f"choosing models by features gives {lift.points:+.1f} points of accuracy over the same shares of models dealt "
        f"at random (standard error {lift.error_points:.1f}); extracting them costs as much time as "
        f"{lift.cost_points:.1f} points are worth; it is in doubt on {100 * lift.doubt:.0f} % of the images"
    )
    if lift.offered:
        return f"The premodel: {gives}."
    return f"The premodel adds nothing here, so chain is not offered: {gives}."


def _of_multiplexer(found: Multiplexing) -> str:
    """How much the multiplexer knows, what it costs, and whether it pays beside the cascade and before an edge."""
    knows = ""
    if found.area is not None and found.own_area is not None:
        knows = (
            f" It predicts where {found.reads} is right with an area under the curve of {found.area:.3f}, where 0.5 is "
            f"guessing; {found.reads}'s own confidence has {found.own_area:.3f}."
        )
    cost = f"the cascade begins with {found.first}, and a perfect one pays only below {found.pays_below_ms:.3f} ms"
    if found.first == found.reads:
        cost = "the cascade begins with the same model, so that this costs nothing more"
    near = list(found.stays)[-1]
    stays, interval = found.stays[near], found.points_interval
    return (
        f"The multiplexer reads what {found.reads} answers, {found.cost_ms:.3f} ms on every image; {cost}.{knows} "
        f"multiplexer beside cascade: {found.points:+.2f} points ({interval.low:+.2f} to {interval.high:+.2f}) in "
        f"{found.time_ratio:.2f} times the time. If the most expensive model ran on an edge server, {near} here could "
        f"answer {100 * stays.share:.1f} % of the images with {stays.points:+.2f} points "
        f"({stays.points_interval.low:+.2f} to {stays.points_interval.high:+.2f})."
    )


def _dominates(result: Result, other: Result, criterion: Criterion) -> bool:
    faster = result.time_ms.mean < other.time_ms.mean
    return result.name != other.name and faster and result.share(criterion) > other.share(criterion)
