"""The policies that weigh what a calibration knows of the paths here against the models of an edge server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jetsel.base.config import Edge
from jetsel.base.errors import ConfigError
from jetsel.policies.calibration import Calibration
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer_edge import MultiplexerEdge, made_for
from jetsel.policies.policy import Policy
from jetsel.policies.single import Single
from jetsel.wire import Criterion


def deadline_policies(
    criterion: Criterion,
    offered: Mapping[str, Policy],
    calibration: Calibration,
    here: Sequence[str],
    elsewhere: Sequence[str],
    edge: Edge,
) -> list[Deadline]:
    """Return the policy that goes by time, and the one that selects as MDInference published it.

    None where the calibration does not say how accurate what is here is. offered: the policies of the family. here,
    elsewhere: names of models, cheapest first. Raises ConfigError where it is not known how accurate one of the edge
    is.
    """
    paths = known_paths(criterion, offered, calibration, here)
    if not paths:
        return []
    accuracy = {name: calibration.figures[criterion][name][criterion] for name in paths}
    accuracy |= _accuracy_of(criterion, calibration, elsewhere, edge)
    otherwise, away = Single(here[-1]), tuple(elsewhere)
    return [
        Deadline(paths, otherwise, away, accuracy, edge.allow, edge.duplicate, as_published)
        for as_published in (False, True)
    ]


def edge_policy(
    criterion: Criterion, calibration: Calibration, here: Sequence[str], elsewhere: Sequence[str], edge: Edge
) -> MultiplexerEdge | None:
    """Return the policy by which a multiplexer says what is sent to the edge's most accurate model.

    None if there is no edge, or the calibration has no multiplexer. Raises as deadline_policies does.
    """
    whole = [name for name in elsewhere if REDUCED not in name]
    if not whole or MULTIPLEXER not in calibration.parts:
        return None
    accuracy = _accuracy_of(criterion, calibration, whole, edge)
    away = max(whole, key=accuracy.__getitem__)
    there = away.removeprefix(EDGE)
    return made_for(criterion, calibration, tuple(here), away, there, accuracy[away], edge.allow)


def known_paths(
    criterion: Criterion, offered: Mapping[str, Policy], calibration: Calibration, here: Sequence[str]
) -> dict[str, Policy]:
    """Return the single models and cascades here of which the calibration has figures."""
    figures = calibration.figures.get(criterion, {})
    return {
        name: policy
        for name, policy in offered.items()
        if name in figures and not policy.features and set(policy.models) <= set(here)
    }


def _accuracy_of(
    criterion: Criterion, calibration: Calibration, elsewhere: Sequence[str], edge: Edge
) -> dict[str, float]:
    """Return how accurate the edge's models are, as configured or calibrated; raises ConfigError for one unknown."""
    figures, accuracy = calibration.figures.get(criterion, {}), {}
    for name in elsewhere:
        known = accuracy_there(criterion, figures, name, edge)
        if known is None:
            there = name.removeprefix(EDGE)
            raise ConfigError(f"edge.models.{there}.accuracy: the calibration has none; example: accuracy = 0.84")
        accuracy[name] = known
    return accuracy


def accuracy_there(criterion: Criterion, figures: Mapping[str, Any], name: str, edge: Edge) -> float | None:
    """Return how accurate one of the edge's models is, as configured or calibrated, None where neither says it."""
    there, _, px = name.removeprefix(EDGE).partition(REDUCED)
    told = edge.models[there]
    known = told.accuracy_at_px[px] if px else told.accuracy
    return figures.get(f"single:{there}", {}).get(criterion) if known is None else known
