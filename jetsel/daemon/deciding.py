"""Which of a family's policies decides about a request, and why."""

from __future__ import annotations

from jetsel.daemon.family import ServedFamily
from jetsel.errors import BadRequestError, UnknownModelError, UnknownPolicyError, did_you_mean
from jetsel.policies import Policy
from jetsel.policies.deadline import NAME as TIMED
from jetsel.policies.registry import no_such
from jetsel.wire import Classify


def policy_for(family: ServedFamily, request: Classify) -> Policy:
    """The policy that this request asks for, or the default.

    Raises UnknownModelError, UnknownPolicyError, and BadRequestError where it names a model of the edge for a
    photograph that is to stay here.
    """
    policy, queues = _asked_for(family, request), family.driver.queues
    away = [model for model in policy.models if model in queues and queues[model].runner is not None]
    if request.on_device and away:
        raise BadRequestError(
            f'"on_device" keeps the photograph here, and {away[0]} runs at the edge: send only one of the two'
        )
    return policy


def _asked_for(family: ServedFamily, request: Classify) -> Policy:
    offered = family.policies[request.criterion]
    if request.model is not None:
        if request.policy is not None:
            raise UnknownPolicyError('"model" pins one model and "policy" chooses among several: send one of them')
        queue = family.driver.queues.get(request.model)
        if queue is None or queue.chooses:
            names = [name for name, one in family.driver.queues.items() if not one.chooses]
            near = did_you_mean(request.model, names)
            raise UnknownModelError(f"family {family.name} has no model {request.model!r}{near}: {', '.join(names)}")
        return offered[f"single:{request.model}"]
    name = request.policy or family.default_policy[request.criterion]
    if request.policy is None and request.deadline_ms is not None and TIMED in offered:
        name = TIMED
    if name not in offered:
        raise UnknownPolicyError(f"family {family.name} has {no_such(name, offered)}")
    return offered[name]


def why(family: ServedFamily, request: Classify) -> str:
    """Why the policy of this request decides, in words."""
    if request.model is not None or request.policy is not None:
        return f"the request names the {'model' if request.model is not None else 'policy'}"
    if request.deadline_ms is not None and TIMED in family.policies[request.criterion]:
        return "the request has a deadline"
    return family.because
