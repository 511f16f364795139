"""Chooses the policy that answers a request, and says why."""

from __future__ import annotations

from dataclasses import replace

from jetsel.base.errors import BadRequestError, UnknownModelError, UnknownPolicyError, did_you_mean
from jetsel.daemon.family import ServedFamily
from jetsel.policies import Policy
from jetsel.policies.deadline import NAME as DEADLINE_POLICY
from jetsel.policies.front import Front
from jetsel.policies.registry import no_such
from jetsel.policies.requirements import Requirements
from jetsel.wire import Classify


def policy_for(family: ServedFamily, request: Classify) -> Policy:
    """Return the policy that this request asks for, or the default policy.

    Raises UnknownModelError, UnknownPolicyError, and BadRequestError if requirements come with a model or a policy, or
    if an image that must stay on the device would go to the edge server.
    """
    least_accuracy, most_energy_mj = request.least_accuracy, request.most_energy_mj
    has_requirements = (least_accuracy, most_energy_mj) != (None, None)
    if has_requirements and (request.model, request.policy) != (None, None):
        raise BadRequestError(
            '"least_accuracy" and "most_energy_mj" choose how to answer: send them without "model" and "policy"'
        )
    if has_requirements:
        return replace(family.requirements, least_accuracy=least_accuracy, most_energy_mj=most_energy_mj)
    policy, queues = _named_policy(family, request), family.driver.queues
    remote = [model for model in policy.models if model in queues and queues[model].runner is not None]
    if request.on_device and remote:
        raise BadRequestError(
            f'"on_device" keeps the image on the device, and {remote[0]} runs on the edge server: send one of the two'
        )
    return policy


def _named_policy(family: ServedFamily, request: Classify) -> Policy:
    """Return the policy of the request's model, of its policy, for its deadline, or the default: the first it has."""
    offered = family.policies
    if request.model is not None:
        if request.policy is not None:
            raise UnknownPolicyError('"model" pins one model and "policy" chooses among several: send one of them')
        queue = family.driver.queues.get(request.model)
        if queue is None:
            names = list(family.driver.queues)
            near = did_you_mean(request.model, names)
            raise UnknownModelError(f"family {family.name} has no model {request.model!r}{near}: {', '.join(names)}")
        return offered[f"single:{request.model}"]
    name = request.policy or family.defaults.policy
    if request.policy is None and request.deadline_ms is not None and DEADLINE_POLICY in offered:
        name = DEADLINE_POLICY
    if name not in offered:
        raise UnknownPolicyError(f"family {family.name} has {no_such(name, offered)}")
    return offered[name]


def front_for(family: ServedFamily, request: Classify, policy: Policy) -> Front | None:
    """Return the operating points among which the request's policy is chosen when it begins; None for a fixed policy.

    An operating point is a policy with its calibrated accuracy, time and energy; load and power budget decide. Only
    requests of the default policy have them, and only if a latency target or a power budget is configured.
    """
    is_default = request.model is None and request.policy is None and not isinstance(policy, Requirements)
    front = family.front
    return front if is_default and front is not None and policy is front.points[0].policy else None


def policy_reason(family: ServedFamily, request: Classify, policy: Policy) -> str:
    """Return in words why this policy answers the request."""
    if isinstance(policy, Requirements):
        return "the request has requirements"
    if request.model is not None or request.policy is not None:
        return f"the request names the {'model' if request.model is not None else 'policy'}"
    if request.deadline_ms is not None and DEADLINE_POLICY in family.policies:
        return "the request has a deadline"
    default = family.defaults.policy
    if policy.name != default:
        return f"load, power budget or promise led from {default} to this operating point"
    return family.defaults.because
