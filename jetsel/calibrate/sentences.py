"""What a comparison means, in sentences for people who do not read tables."""

from __future__ import annotations

from collections.abc import Mapping

from jetsel.calibrate.findings import Chain, Result
from jetsel.policies.registry import KINDS

LEARNED = tuple(kind.name for kind in KINDS)


def sentences(
    policies: Mapping[str, Result],
    bounds: Mapping[str, Result],
    best_single: str,
    chain: Chain,
    criterion: str,
    labels_from: str | None,
) -> list[str]:
    """Return the findings of one criterion, the most useful first.

    labels_from: the model whose answers stood for labels; then what is right is what agrees with it.
    """
    said = [_beside_single(policies[name], best_single, criterion) for name in LEARNED if name in policies]
    better = [name for name in LEARNED if name in policies and _dominates(policies[name], policies["chain"], criterion)]
    if better:
        said.append(
            f"{_listed(better)} {'is' if len(better) == 1 else 'are'} both faster and more accurate than chain."
        )
    said += _beside_coin([policies[name] for name in LEARNED if name in policies], criterion)
    single, oracle = bounds["best single"], bounds["oracle"]
    said.append(
        f"If the cheapest model that is right were known each time, {_accuracy(oracle, criterion):.1f} % would be "
        f"right in {_costs(oracle)}; {best_single} alone is right on {_accuracy(single, criterion):.1f} % "
        f"in {_costs(single)}."
    )
    said.append(_break_even(chain))
    if labels_from is not None:
        said.insert(0, f"There were no labels: right means here that the answer agrees with {labels_from}'s.")
    return said


def points_over_coin(result: Result, criterion: str) -> float | None:
    """Return the points over the best mix of two single models in the same mean time; None where none is as fast."""
    return None if result.coin is None else _accuracy(result, criterion) - 100 * result.coin


def _beside_coin(results: list[Result], criterion: str) -> list[str]:
    """Which policies know anything of a photograph: those that beat models dealt at random in the same mean time."""
    gains = [(result.name, points_over_coin(result, criterion)) for result in results]
    listed = [f"{name} {points:+.1f}" for name, points in gains if points is not None]
    beside = "Beside the best mix of two single models that a coin deals in the same mean time, in points"
    return [f"{beside}: {_listed(listed)}."] if listed else []


def _beside_single(result: Result, best_single: str, criterion: str) -> str:
    against = result.vs_best_single
    gained = against.top1_points if criterion == "top1" else against.top5_points
    time = 100 * (1 - against.time_ratio)
    said = [
        f"saves {time:.0f} % of {best_single}'s time" if time >= 0 else f"costs {-time:.0f} % more than {best_single}"
    ]
    if against.energy_ratio is not None:
        energy = 100 * (1 - against.energy_ratio)
        said.append(f"saves {energy:.0f} % of its energy" if energy >= 0 else f"takes {-energy:.0f} % more energy")
    points = f"{'gains' if gained > 0 else 'loses'} {abs(gained):.1f} points"
    said.append("is as accurate" if abs(gained) < 0.05 else points)
    return f"On your photographs, {result.name} {_listed(said)}."


def _costs(result: Result) -> str:
    energy = "" if result.energy_mj is None else f" and {result.energy_mj.mean:.2f} mJ"
    return f"{result.time_ms.mean:.2f} ms{energy}"


def _break_even(chain: Chain) -> str:
    """Whether a premodel can pay at all: it saves no more than the runs of the first rung that were in vain."""
    could = "a perfect one could pay" if chain.chooser_ms < chain.pays_below_ms else "not even a perfect one could pay"
    energy = "" if chain.chooser_mj is None else f" and {chain.chooser_mj:.3f} mJ"
    return (
        f"Features and choice take {chain.chooser_ms:.3f} ms{energy}. A premodel that skips a cascade's first rung "
        f"pays only below that rung's time multiplied by how often the cascade goes on from it, "
        f"{chain.pays_below_ms:.3f} ms: "
        f"here {could}."
    )


def _dominates(result: Result, other: Result, criterion: str) -> bool:
    faster = result.time_ms.mean < other.time_ms.mean
    return result.name != other.name and faster and _accuracy(result, criterion) > _accuracy(other, criterion)


def _accuracy(result: Result, criterion: str) -> float:
    return 100 * (result.top1 if criterion == "top1" else result.top5)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
