"""Wraps the policy that answers a request, so that at most a promised share of its answers is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.promise import Promises
from jetsel.base.errors import RequirementsError
from jetsel.policies import Policy
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front
from jetsel.policies.requirements import Requirements
from jetsel.policies.with_promise import WithPromise


class FamilyPromises:
    """Promises of one family: error rates (wrong_at_most, 0 to 1) that its calibration guarantees, by policy.

    wrong_at_most: the level of requests that set none: the calibration's, or the configured one; None for no promise.
    """

    def __init__(self, calibration: Calibration | None, wrong_at_most: float | None) -> None:
        self._promises = {} if calibration is None else calibration.promises  # by policy
        own = None if calibration is None else calibration.wrong_at_most
        self.wrong_at_most = wrong_at_most if own is None else own

    def of_policy(self, policy: str) -> Promises | None:
        """Return the promises of a policy, one for each level; None if it was not calibrated for any."""
        return self._promises.get(policy)

    def level(self, wrong_at_most: float | None) -> float | None:
        """Return the level for a request that sets wrong_at_most (None: the family's); None if it needs no promise."""
        level = self.wrong_at_most if wrong_at_most is None else wrong_at_most
        return None if level is None or level >= 1 else level

    def guarantee(self, policy: Policy, wrong_at_most: float | None) -> Policy:
        """Return the policy with the promise that the request or the family needs; unchanged if none is needed.

        Its doubtful answers are then refused or marked (WithPromise). A policy that chooses among operating points
        keeps those that can promise the level. Raises RequirementsError with the reason, such as too few images.
        """
        level = self.level(wrong_at_most)
        if level is None:
            return policy
        if isinstance(policy, Deadline):
            front = self.guarantee_front(policy.front, level)
            able = {point.policy.name: point.policy for point in front.points}
            otherwise = able.get(policy.otherwise.name, front.points[0].policy)  # if no point is fast enough
            return replace(policy, front=front, otherwise=otherwise, edge=Front())
        if isinstance(policy, Requirements):
            front = self.guarantee_front(policy.front, level)
            names = ", ".join(point.policy.name for point in front.points)
            words = f"only {names} can promise wrong_at_most {level:g}"
            return replace(policy, front=front, edge=Front(), promise=words)
        promise = self.of_policy(policy.name)
        if promise is None:
            raise self._refusal_error(level, policy.name)
        return WithPromise(policy, promise.promise_for(level))

    def guarantee_front(self, front: Front, wrong_at_most: float | None) -> Front:
        """Return the operating points that can promise the level, each with the promise. Raises as `guarantee`.

        They stay ranked by accuracy. Ranking by the share of answers would prefer the luckiest threshold, since that
        share comes from the images that tested the thresholds.
        """
        level = self.level(wrong_at_most)
        if level is None:
            return front
        able = front.only(lambda point: self._guaranteed(point.policy, level))
        if able is None:
            raise self._refusal_error(level)
        return able

    def reason_missing(self, policy: Policy) -> str | None:
        """Return why this policy cannot promise the family's level, None if it can."""
        try:
            self.guarantee(policy, None)
        except RequirementsError as error:
            return str(error)
        return None

    def _guaranteed(self, policy: Policy, level: float) -> WithPromise | None:
        """Return the policy with its promise, None if it cannot promise the level."""
        promise = self.of_policy(policy.name)
        try:
            return None if promise is None else WithPromise(policy, promise.promise_for(level))
        except RequirementsError:
            return None

    def _refusal_error(self, level: float, policy: str | None = None) -> RequirementsError:
        """Return the error that says why this policy cannot promise the level; for None, why no policy can."""
        promises = self._promises
        if not promises:
            return RequirementsError(
                f"wrong_at_most {level:g}: the family's calibration has no promises: jetsel calibrate IMAGES"
            )
        if policy is not None:
            return RequirementsError(
                f"wrong_at_most {level:g}: {policy} was not calibrated for it; {' and '.join(promises)} were"
            )
        nearest = min(
            promises.values(), key=lambda one: min((m.images or math.inf for m in one.missing), default=math.inf)
        )
        try:
            nearest.promise_for(level)
        except RequirementsError as error:
            return error
        return RequirementsError(f"wrong_at_most {level:g}: no policy that can answer this was calibrated for it")
