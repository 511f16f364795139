"""Which model is a photograph's optimum, and which models the premodel chooses among: Algorithm 1 of Taylor et al."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


def optimum_votes(right: NDArray[np.bool_], costs: Sequence[float] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return, for each photograph, True for its optimum alone: the cheapest model that is right (section 3.3).

    right: (photographs, models), who was right on what. costs: one a model, in any order; of two that cost the same,
    the first counts as cheaper. A photograph that no model gets right votes for none.
    Returns (photographs, models) bool. Raises ValueError if the shapes do not fit or a cost is no number.
    """
    right = np.asarray(right, np.bool_)
    costs = np.asarray(costs, np.float64)
    if right.ndim != 2 or costs.shape != right.shape[1:] or np.isnan(costs).any():
        raise ValueError(f"right is {right.shape}, costs are {costs}: one cost is needed for each column")
    cheapest_first = costs.argsort(kind="stable")
    ordered = right[:, cheapest_first]
    votes = np.zeros_like(right)
    votes[:, cheapest_first] = ordered & (ordered.cumsum(axis=1) == 1)  # the first that is right, and only it
    return votes


class Step(Struct, frozen=True):
    """One step of Algorithm 1 (section 3.2; Figures 5 and 6).

    accuracy: of each candidate on what failed before this step (in the first step: how often it is the optimum).
    gain: what the added model brought, in points; total: the share that one of the models so far gets right.
    """

    added: str
    accuracy: dict[str, float]
    failing: int
    gain_points: float
    total: float
    kept: bool  # False for the last step, whose gain was at most theta


def select_models(
    right: NDArray[np.bool_],
    costs: Sequence[float] | NDArray[np.float64],
    models: Sequence[str],
    theta_points: float,
) -> tuple[tuple[str, ...], list[Step]]:
    """Return the models in the order in which they were added, and every step (section 3.2).

    The first is the one that is most often optimal, the cheapest that is right; then always the most accurate on what
    still fails, until one gains no more than theta_points of all photographs. The pseudo code adds that last one too;
    the text and the paper's result (three models) leave it out, and so does this: it stands in the steps as not kept.
    right: (n, m). costs: (m,), ms or mJ. Of equals the cheaper is taken.
    """
    costs = np.asarray(costs, np.float64)
    optimal = optimum_votes(right, costs).mean(axis=0)
    first = max(range(len(models)), key=lambda i: (optimal[i], -costs[i]))
    chosen, failing = [first], ~right[:, first]
    total = float(right[:, first].mean())
    steps = [Step(models[first], _by_model(models, optimal, []), len(right), 100 * total, total, kept=True)]
    while failing.any() and len(chosen) < len(models):
        accuracy = right[failing].mean(axis=0)
        left = [i for i in range(len(models)) if i not in chosen]
        best = max(left, key=lambda i: (accuracy[i], -costs[i]))
        saved = int((right[:, best] & failing).sum())
        gain = 100 * saved / len(right)  # of counts, since a difference of shares may round to more than theta
        now = float((right[:, best] | ~failing).mean())
        kept = gain > theta_points
        steps.append(Step(models[best], _by_model(models, accuracy, chosen), int(failing.sum()), gain, now, kept=kept))
        if not kept:
            break
        chosen.append(best)
        failing &= ~right[:, best]
    return tuple(models[i] for i in chosen), steps


def _by_model(models: Sequence[str], values: NDArray[np.float64], without: Sequence[int]) -> dict[str, float]:
    return {model: float(values[i]) for i, model in enumerate(models) if i not in without}
