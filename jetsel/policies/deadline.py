"""The policy of requests with a deadline: MDInference (Ogden and Guo, section IV), with and without an edge server.

It selects a path on this device (a model or a cascade) by the time left (section IV-D without its third stage). If an
edge server is available, a local model and one of the server run at the same time, and the more accurate answer that
arrives by the deadline is used (IV-E), unless a local path is as likely to be right. `duplicate` controls whether both
run only if needed, as section VI proposes.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import structs

from jetsel.base.errors import JetselError
from jetsel.policies.front import CAN_RUN, LATE, Bound, Front, Measure, Point
from jetsel.policies.policy import Decision, Evidence, Outlook, OutOfTime, Policy, Run, Steps

NAME = "deadline"
EDGE = "edge:"  # prefix of the edge server's models, whose names may equal those of local models
REDUCED = "@"  # in the edge server's model names: the size in px of the images sent to the model follows
CERTAIN_DEVIATIONS = 2.33  # standard deviations; 99 % of normally distributed times are below
LEAST_GAIN = 0.02  # smallest gain of accuracy that justifies use of the edge server
HANDOVER_MS = 1.0  # from the expiry of a timer to the start of a model
EdgeUse = Literal["never", "low-confidence", "always"]
Duplicate = Literal["always", "when-needed", "never"]


class _ModelForecast(NamedTuple):
    """A model that may answer a request, with current estimates of its latency.

    mean_ms, spread_ms: mean and standard deviation of the latency. left_ms: time until the deadline, less mean_ms;
    negative if the answer is expected too late.
    """

    model: str
    accuracy: float
    mean_ms: float
    spread_ms: float
    left_ms: float

    @property
    def probability_in_time(self) -> float:
        """Probability of an answer by the deadline, if latencies are normally distributed."""
        return (1 + math.erf(self.left_ms / (max(self.spread_ms, 1e-9) * math.sqrt(2)))) / 2


@dataclass(frozen=True)
class Deadline:
    """Policy that chooses local models, an edge server's model, or both, by the time left until the deadline.

    front: operating points of the device. otherwise: policy of requests without a deadline. singles: single local
    models to run beside one of the edge server's, the most accurate first. edge: the edge server's models. allow,
    duplicate: settings [edge] allow and duplicate: whether the server may be used, and whether a local model runs too.
    """

    front: Front
    otherwise: Policy
    singles: Front
    edge: Front
    allow: EdgeUse
    duplicate: Duplicate
    name: str = NAME
    features: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Every local model that may run; the edge server's models may appear and vanish."""
        return self.front.models

    @property
    def first_models(self) -> tuple[str, ...]:
        """Every local model, since each may run alone."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose and run a local path, a model of the edge server, or both."""
        outlook = photo.outlook
        if outlook is None:
            return (yield from self.otherwise(photo))
        path = self.local_path(outlook)
        if outlook.network_ms is None or self.allow == "never":
            return (yield from self._run_local(path, photo, outlook))
        local = self._local_model(outlook)
        point = self.best_edge_model(outlook, 0.0 if local is None else local.accuracy)
        if point is None:
            return (yield from self._run_local(path, photo, outlook))
        remote = _forecast(point, outlook)
        if local is None:
            (prediction,) = yield Run((remote.model,), "no model here can run", "deadline")
            return Decision(prediction, f"{remote.model} answered in time")
        # Expected accuracy of both: the remote answer if it is in time, otherwise the local one.
        together = remote.probability_in_time * remote.accuracy + (1 - remote.probability_in_time) * local.accuracy
        if path.known_accuracy >= together - LEAST_GAIN:
            return (yield from self._run_local(path, photo, outlook))
        # has_time: the remote model would be in time even if it began after the local one.
        has_time = remote.left_ms - local.mean_ms - local.spread_ms >= CERTAIN_DEVIATIONS * remote.spread_ms
        if self.allow == "low-confidence" or (self.duplicate == "when-needed" and has_time):
            return (yield from self._run_local_first(local, remote))
        # is_certain: the remote answer is nearly certain to be in time. The local model then starts only if it is late,
        # also with "never", which otherwise runs only the local path.
        is_certain = self.duplicate != "always" and remote.left_ms >= CERTAIN_DEVIATIONS * remote.spread_ms
        if self.duplicate == "never" and not is_certain:
            return (yield from self._run_local(path, photo, outlook))
        held_ms = local.mean_ms + CERTAIN_DEVIATIONS * local.spread_ms + HANDOVER_MS
        return (yield from self._run_both(local, remote, held_ms if is_certain else None))

    @staticmethod
    def _run_local(path: Point, photo: Evidence, outlook: Outlook) -> Steps:
        decision = yield from path.policy(photo)
        why = f"{path.policy.name} is expected within {outlook.budget_ms:.0f} ms; {decision.because}"
        return structs.replace(decision, because=why, operating_point=path.policy.name)

    @staticmethod
    def _run_both(local: _ModelForecast, remote: _ModelForecast, held_ms: float | None) -> Steps:
        """Run both models. held_ms: start the local one only this long before the deadline; None: start it at once."""
        because = f"{remote.model} {'may come late' if held_ms is None else 'is nearly certain to come'}"
        predictions = yield Run((local.model, remote.model), because, "deadline", held_ms)
        return Decision(predictions[-1], f"{predictions[-1].model} gave the best answer before the deadline")

    @staticmethod
    def _run_local_first(local: _ModelForecast, remote: _ModelForecast) -> Steps:
        """Run the local model; run the edge server's too if the confidence is below that model's accuracy."""
        (prediction,) = yield Run((local.model,), f"{remote.model} runs next if this answer is not sure")
        if prediction.confidence >= remote.accuracy:
            reached = f"the confidence of {local.model} reaches the accuracy of {remote.model}"
            return Decision(prediction, f"{reached}: {prediction.confidence:.2f}")
        best = prediction
        with contextlib.suppress(JetselError, OutOfTime):
            (best,) = yield Run((remote.model,), f"{local.model} was not sure: {prediction.confidence:.2f}", "deadline")
        return Decision(best, f"{best.model} gave the best answer before the deadline")

    def local_path(self, outlook: Outlook) -> Point:
        """Return the local operating point to use now."""
        return self.front.select_now(outlook)

    def best_edge_model(self, outlook: Outlook, least: float) -> Point | None:
        """Return the edge server's model that most raises the expected accuracy above `least`; None if none can run."""

        def gain(point: Point, outlook: Outlook) -> float:
            forecast = _forecast(point, outlook)
            return forecast.probability_in_time * (forecast.accuracy - least)

        chosen = self.edge.select(outlook, (CAN_RUN,), (Measure("accuracy", "", gain, is_gain=True),))
        return None if chosen is None else chosen.point

    def _local_model(self, outlook: Outlook) -> _ModelForecast | None:
        """Return the most accurate local model that keeps the deadline, otherwise the fastest; None if none can run.

        Section IV-E always takes the fastest; a slower one that keeps the deadline is right more often.
        """
        chosen = self.singles.select(outlook, (Bound(LATE, outlook.budget_ms - HANDOVER_MS),))
        chosen = chosen or self.singles.select(outlook, (CAN_RUN,), (LATE,))
        return None if chosen is None else _forecast(chosen.point, outlook)


def _forecast(point: Point, outlook: Outlook) -> _ModelForecast:
    """Return the estimates for the last model of a point, all of whose models can run now."""
    times_ms = point.times_ms(outlook)
    assert times_ms is not None
    return _ModelForecast(point.policy.models[-1], point.known_accuracy, *times_ms, outlook.budget_ms - times_ms[0])
