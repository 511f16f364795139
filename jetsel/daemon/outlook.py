"""What a request may know of time and of the edge, and the policies that go by it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from jetsel.config import Edge as EdgeConfig
from jetsel.daemon.metering.estimates import no_energies
from jetsel.edge.model_runner import EdgeRunner
from jetsel.errors import ConfigError
from jetsel.policies import Policy
from jetsel.policies.ask_edge import AskEdge
from jetsel.policies.calibration import Calibration
from jetsel.policies.deadline import EDGE, REDUCED, Deadline
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer_edge import MultiplexerEdge, made_for
from jetsel.policies.policy import Outlook
from jetsel.policies.requirements import Path, Requirements
from jetsel.policies.single import Single
from jetsel.runtime import ModelQueue
from jetsel.wire import Criterion

AROUND_BYTES = 300  # of a request to the edge, around the photograph
STAYS = "the photograph may not leave the device"
SPARE = 0.7  # of its share may a model take: decoding and the reply take time, too, and times vary
SEEDED = 0.1  # of its mean, the deviation of a model that has not run yet, and of a load by the last one


def outlook(
    queues: Mapping[str, ModelQueue],
    deadline_s: float,
    now_s: float,
    share_ms: float,
    size_px: tuple[int, int],
    file_bytes: int | None,
    *,
    on_device: bool,
) -> Outlook:
    """Return what is known of every model that can run now; what a smaller file saves on its way is taken off.

    deadline_s: infinite where there is none. share_ms: what each of those that wait could have of its deadline, were
    they as this one: models here that take more for one photograph of a batch are left out, all but the fastest.
    size_px: width and height of the photograph. file_bytes: None where it came as pixels.
    """
    models_ms: dict[str, tuple[float, float]] = {}
    works_ms: dict[str, float] = {}
    unavailable: dict[str, str] = {}
    traffic_kb: dict[str, float] = {}
    network_ms = None
    for name, queue in queues.items():
        if (reason := STAYS if on_device and queue.runner is not None else queue.reason) is not None:
            unavailable[name] = reason
        elif isinstance(queue.runner, EdgeRunner):
            there = queue.runner.name
            server = queue.runner.edge.server(there)
            sent_bytes = queue.runner.bytes_for(*size_px, file_bytes) + AROUND_BYTES
            if (received_bytes := server.answers_bytes.get(there)) is not None:
                traffic_kb[name] = (sent_bytes + received_bytes) / 1e3
            known, way_ms = server.times[there].at(now_s), server.link.estimate(sent_bytes)
            if known is None or way_ms is None:
                continue
            network_ms = network_ms or way_ms
            models_ms[name] = known[0] + way_ms[0] - network_ms[0], known[1]
        else:
            works_ms[name] = queue.expected_ms(0.5, now_s) or 0.0
            if (known := _with_tail(queue, now_s)) is not None:
                models_ms[name] = known
    least_ms = min(works_ms.values(), default=0.0)
    for name, work_ms in works_ms.items():
        if work_ms > max(SPARE * share_ms, least_ms):
            models_ms.pop(name, None)
            unavailable[name] = "those that wait leave no time for it"
    return Outlook((deadline_s - now_s) * 1e3, models_ms, network_ms, random.random(), unavailable, traffic_kb)


def load_for_the_next(queues: Mapping[str, ModelQueue], models: Sequence[str], ahead: Outlook) -> None:
    """Begin to load the most expensive of a policy's models that only its load keeps from this deadline.

    What could not be loaded is tried again, too. Else requests that all have deadlines would go another way for ever.
    """
    for name in models:
        if name in queues and queues[name].reason is not None:
            queues[name].want()
    late_ms = {name: sum(ahead.models_ms[name]) - ahead.budget_ms for name in models if name in ahead.models_ms}
    barred = [name for name in queues if 0 < late_ms.get(name, 0.0) <= queues[name].load_due_ms]
    if barred:
        queues[barred[-1]].want()


def _with_tail(queue: ModelQueue, now_s: float) -> tuple[float, float] | None:
    """Mean and deviation of one run here, and of its load before it where one is due, by the last.

    The deviation reaches up to the 95th percentile where that is further.
    """
    known = queue.estimate.at(now_s)
    slow_ms = queue.expected_ms(0.95, now_s)
    if known is None:
        return None
    tail_ms = known[1] if slow_ms is None else max(known[1], slow_ms - known[0])
    load_ms = queue.load_due_ms
    return known[0] + load_ms, math.hypot(tail_ms, SEEDED * load_ms)


def deadline_policies(
    criterion: Criterion,
    offered: Mapping[str, Policy],
    calibration: Calibration,
    here: Sequence[str],
    elsewhere: Sequence[str],
    edge: EdgeConfig,
) -> list[Deadline]:
    """Return the policy that goes by time, and the one that selects as MDInference published it.

    None where the calibration does not say how accurate what is here is. offered: the policies of the family. here,
    elsewhere: names of models, cheapest first. Raises ConfigError where it is not known how accurate one of the edge
    is.
    """
    paths = _known_paths(criterion, offered, calibration, here)
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
    criterion: Criterion, calibration: Calibration, here: Sequence[str], elsewhere: Sequence[str], edge: EdgeConfig
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
    known = {} if calibration is None else _known_paths(criterion, offered, calibration, here)
    paths = [
        Path(policy, one.get(criterion), one.get("mean_ms"), one.get("mean_mj"))
        for name, policy in (known or {f"single:{name}": Single(name) for name in here}).items()
        for one in [figures.get(name, {})]
    ]
    first = here[0] if edge.allow == "low-confidence" else None
    first_mj = 0.0 if first is None else figures.get(f"single:{first}", {}).get("mean_mj")
    for name in elsewhere:
        accuracy = _accuracy_there(criterion, figures, name, edge)
        paths.append(Path(AskEdge(name, accuracy, first), accuracy, None, first_mj, is_away=True))
    return Requirements(
        paths=tuple(paths),
        saves="time" if calibration is None else calibration.objective,
        mj_per_kb=edge.mj_per_kb,
        no_accuracy=None if known else "the family has no calibration that says it: jetsel calibrate PHOTOS",
        no_energy=no_energies(calibration),
        no_edge=None if elsewhere else _no_edge(edge),
    )


def _no_edge(edge: EdgeConfig) -> str:
    """Why a family has no model at the edge."""
    if edge.url is None:
        return "none is configured (edge.url)"
    return 'edge.allow is "never"' if edge.allow == "never" else "it answers for another family (edge.family)"


def _known_paths(
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
    criterion: Criterion, calibration: Calibration, elsewhere: Sequence[str], edge: EdgeConfig
) -> dict[str, float]:
    """Return how accurate the edge's models are, as configured or calibrated; raises ConfigError for one unknown."""
    figures, accuracy = calibration.figures.get(criterion, {}), {}
    for name in elsewhere:
        known = _accuracy_there(criterion, figures, name, edge)
        if known is None:
            there = name.removeprefix(EDGE)
            raise ConfigError(f"edge.models.{there}.accuracy: the calibration has none; example: accuracy = 0.84")
        accuracy[name] = known
    return accuracy


def _accuracy_there(criterion: Criterion, figures: Mapping[str, Any], name: str, edge: EdgeConfig) -> float | None:
    """Return how accurate one of the edge's models is, as configured or calibrated, None where neither says it."""
    there, _, px = name.removeprefix(EDGE).partition(REDUCED)
    told = edge.models[there]
    known = told.accuracy_at_px[px] if px else told.accuracy
    return figures.get(f"single:{there}", {}).get(criterion) if known is None else known


def seed(queues: Mapping[str, ModelQueue], calibration: Calibration | None) -> None:
    """Have the running estimates begin with what the calibration measured."""
    if calibration is None:
        return
    for name, cost_ms in calibration.costs_ms.items():
        if name in queues and math.isfinite(cost_ms):
            queues[name].estimate.prior_ms = (cost_ms, SEEDED * cost_ms)
