"""The policy of requests that say what their answer must have, by a family's calibration and its edge server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jetsel.base.config import Edge as EdgeConfig
from jetsel.daemon.metering.estimates import no_energies
from jetsel.policies import Policy
from jetsel.policies.calibration import Calibration
from jetsel.policies.requirements import Path, Requirements
from jetsel.policies.single import Single
from jetsel.policies.with_edge import AskEdge, accuracy_there, known_paths
from jetsel.wire import Criterion


def requirements_policy(
    criterion: Criterion,
    offered: Mapping[str, Policy],
    calibration: Calibration | None,
    here: Sequence[str],
    elsewhere: Sequence[str],
    edge: EdgeConfig,
) -> Requirements:
    """Return the policy of requests that say what their answer must have; each puts in what it asks for.

    Without a calibration its paths are the single models, of which nothing is known. Others are as deadline_policies'.
    """
    figures: dict[str, Any] = {} if calibration is None else calibration.figures.get(criterion, {})
    known = {} if calibration is None else known_paths(criterion, offered, calibration, here)
    paths = [
        Path(policy, one.get(criterion), one.get("mean_ms"), one.get("mean_mj"))
        for name, policy in (known or {f"single:{name}": Single(name) for name in here}).items()
        for one in [figures.get(name, {})]
    ]
    first = here[0] if edge.allow == "low-confidence" else None
    first_mj = 0.0 if first is None else figures.get(f"single:{first}", {}).get("mean_mj")
    for name in elsewhere:
        accuracy = accuracy_there(criterion, figures, name, edge)
        paths.append(Path(AskEdge(name, accuracy, first), accuracy, None, first_mj, is_away=True))
    return Requirements(
        paths=tuple(paths),
        saves="time" if calibration is None else calibration.objective,
        mj_per_kb=edge.mj_per_kb,
        no_accuracy=None if known else "the family has no calibration with this value: jetsel calibrate IMAGES",
        no_energy=no_energies(calibration),
        no_edge=None if elsewhere else _no_edge(edge),
    )


def _no_edge(edge: EdgeConfig) -> str:
    """Why a family has no model at the edge."""
    if edge.url is None:
        return "none is configured (edge.url)"
    return 'edge.allow is "never"' if edge.allow == "never" else "it answers for another family (edge.family)"
