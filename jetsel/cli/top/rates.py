"""What happened between two looks at a daemon, for each second of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jetsel.wire import PowerStatus, StatusReply

Key = TypeVar("Key")


@dataclass(frozen=True)
class Rates:
    """Counts a second over `seconds`; `since_start` where that is the daemon's whole life, for want of an earlier look.

    outcomes: requests by `ok` or error code. runs: photographs, by (family, model). escalated: the share of those runs
    after which another model was asked, where there were any. energy_mj: above idle, of one answer; None: not known.
    """

    seconds: float
    since_start: bool
    outcomes: dict[str, float]
    lost: float
    runs: dict[tuple[str, str], float]
    escalated: dict[tuple[str, str], float]
    energy_mj: float | None

    @property
    def requests(self) -> float:
        """Requests a second, however they ended."""
        return sum(self.outcomes.values())


def rates(before: StatusReply | None, now: StatusReply) -> Rates:
    """Return what happened from one look to the next; since the daemon's start where it is another one than before."""
    if before is not None and (before.pid != now.pid or before.uptime_s >= now.uptime_s):
        before = None
    seconds = max(now.uptime_s - (before.uptime_s if before else 0.0), 1e-3)
    ran = _more(_runs(before), _runs(now))
    followed = _more(_escalations(before), _escalations(now))
    requests = _more(before.requests if before else {}, now.requests)
    return Rates(
        seconds=seconds,
        since_start=before is None,
        outcomes={outcome: count / seconds for outcome, count in requests.items()},
        lost=(now.lost_replies - (before.lost_replies if before else 0)) / seconds,
        runs={model: count / seconds for model, count in ran.items()},
        escalated={model: followed[model] / count for model, count in ran.items() if count},
        energy_mj=_energy_mj(before.power if before else None, now.power),
    )


def _more(before: Mapping[Key, int], now: Mapping[Key, int]) -> dict[Key, int]:
    """Return by how much each count grew; one that is lower than before began anew, as that of a model that changed."""
    return {key: count - before.get(key, 0) if count >= before.get(key, 0) else count for key, count in now.items()}


def _runs(reply: StatusReply | None) -> dict[tuple[str, str], int]:
    families = [] if reply is None else reply.families
    return {(family.name, model.name): model.runs for family in families for model in family.models}


def _escalations(reply: StatusReply | None) -> dict[tuple[str, str], int]:
    families = [] if reply is None else reply.families
    return {(family.name, model.name): model.escalations for family in families for model in family.models}


def _energy_mj(before: PowerStatus | None, now: PowerStatus | None) -> float | None:
    """Return what choosing and models took for one answer, of those that were metered meanwhile."""
    earlier_mj, earlier = _metered(before)
    energy_mj, answers = _metered(now)
    return (energy_mj - earlier_mj) / (answers - earlier) if answers > earlier else None


def _metered(power: PowerStatus | None) -> tuple[float, int]:
    """Return the energy of all answers that were metered, in mJ, and their number: what their mean goes into it."""
    energy_mj, answers = 0.0, 0
    for policy in [] if power is None else power.policies:
        if policy.joules is not None and policy.mean_mj:
            energy_mj += policy.joules * 1e3
            answers += round(policy.joules * 1e3 / policy.mean_mj)
    return energy_mj, answers
