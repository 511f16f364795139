"""MDInference's Table IV and Figures 3 to 8 as plain values, the paper's numbers beside ours where it gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.papers.mdinference import published as paper
from calibration.papers.mdinference.networks import NAMED, Normal
from calibration.papers.mdinference.selections import spanning
from calibration.papers.mdinference.simulate import simulate

SLA_MS = 250.0  # of V-D
SLAS_MS = (50, 75, 100, 115, 125, 150, 175, 200, 225, 250, 275, 300)
CVS = (0.0, 0.25, 0.5, 0.74, 1.0)  # 0.74 is that of the campus (V-B)
CAMPUS_MS = 100.0
LEAST_USE = 0.01  # of the requests under some SLA, for a model to belong to the spanning subset


def table_iv(requests: int, seed: int) -> dict[str, Any]:
    """Return reliance and accuracy in % by network and policy, with the paper's where it has them."""
    chance = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for name, network in NAMED.items():
        network_ms = network.draw(requests, chance)
        found[name] = {}
        for policy, pool in POOLS.items():
            outcome = simulate(paper.models(pool), network_ms, SLA_MS, policy, chance)
            reliance, accuracy = paper.TABLE_IV[name].get(policy, (None, None))
            found[name][policy] = {
                "reliance_pct": 100 * (1 - outcome.attainment),
                "accuracy_pct": 100 * outcome.duplicated(paper.ON_DEVICE),
                "paper": {"reliance_pct": reliance, "accuracy_pct": accuracy},
            }
    return found


POOLS = {
    "static-latency": paper.FASTEST,
    "static-accuracy": paper.TABLE_III,
    "static-greedy": paper.TABLE_III,
    "random": paper.RANDOM_POOL,
    "related-random": paper.TABLE_III,
    "related-accurate": paper.TABLE_III,
    "spanning": paper.TABLE_III,
    "mdinference": paper.TABLE_III,
}
"""The models that each row of Table IV chooses among."""


def spanning_names() -> list[str]:
    """Return the spanning subset of Table III's models (VI)."""
    names = list(paper.TABLE_III)
    return [names[i] for i in spanning(paper.models(paper.TABLE_III))]


def by_sla(requests: int, seed: int) -> list[dict[str, Any]]:
    """Figures 3 and 6: latency and accuracy by SLA on 100 +- 50 ms, without duplication; 6 with NasNet Fictional."""
    chance, network = np.random.default_rng(seed), Normal(CAMPUS_MS, CAMPUS_MS / 2)
    plain, more = paper.models(paper.TABLE_III), paper.models(paper.TABLE_III | paper.FICTIONAL)
    names = list(paper.TABLE_III)
    rows = []
    for sla_ms in SLAS_MS:
        network_ms = network.draw(requests, chance)
        greedy = simulate(plain, network_ms, sla_ms, "static-greedy", chance)
        ours = simulate(plain, network_ms, sla_ms, "mdinference", chance)
        row: dict[str, Any] = {
            "sla_ms": sla_ms,
            "greedy": _figures(greedy.latency_ms.mean(), greedy.accuracy, greedy.attainment),
            "mdinference": _figures(ours.latency_ms.mean(), ours.accuracy, ours.attainment),
            "less_latency_pct": 100 * (1 - float(ours.latency_ms.mean() / greedy.latency_ms.mean())),
            "paper_less_latency_pct": paper.LESS_LATENCY.get(sla_ms),
            "usage": {name: 100 * float(share) for name, share in zip(names, ours.usage(), strict=True)},
        }
        for policy in ("random", "related-random", "related-accurate", "mdinference"):
            outcome = simulate(more, network_ms, sla_ms, policy, chance)
            row[f"fictional {policy}"] = _figures(outcome.latency_ms.mean(), outcome.accuracy, outcome.attainment)
        rows.append(row)
    return rows


def by_variation(requests: int, seed: int) -> list[dict[str, Any]]:
    """Figures 4 and 5: MDInference by the network's coefficient of variation, mean 100 ms; SLAs 100 and 250 ms."""
    chance, models = np.random.default_rng(seed), paper.models(paper.TABLE_III)
    rows = []
    for cv in CVS:
        network_ms = Normal(CAMPUS_MS, cv * CAMPUS_MS).draw(requests, chance)
        for sla_ms in (100.0, 250.0):
            outcome = simulate(models, network_ms, sla_ms, "mdinference", chance)
            told = _figures(outcome.latency_ms.mean(), outcome.accuracy, outcome.attainment)
            rows.append({"cv": cv, "sla_ms": sla_ms, **told, "usage": _usage(outcome.usage())})
    return rows


def by_sla_at_home(requests: int, seed: int) -> list[dict[str, Any]]:
    """Figure 7: accuracy and reliance by SLA on the residential network, with duplication."""
    chance, network = np.random.default_rng(seed), NAMED["residential"]
    rows = []
    for sla_ms in SLAS_MS:
        network_ms = network.draw(requests, chance)
        row: dict[str, Any] = {"sla_ms": sla_ms}
        for policy in ("static-latency", "static-accuracy", "random", "mdinference"):
            outcome = simulate(paper.models(POOLS[policy]), network_ms, sla_ms, policy, chance)
            row[policy] = {
                "reliance_pct": 100 * (1 - outcome.attainment),
                "accuracy_pct": 100 * outcome.duplicated(paper.ON_DEVICE),
            }
        rows.append(row)
    return rows


def twenty(seed: int) -> list[dict[str, Any]]:
    """Figure 8: twenty requests on the residential network at 250 ms, and who answered each."""
    chance, names = np.random.default_rng(seed), list(paper.TABLE_III)
    network_ms = NAMED["residential"].draw(20, chance)
    outcome = simulate(paper.models(paper.TABLE_III), network_ms, SLA_MS, "mdinference", chance)
    return [
        {"network_ms": float(way), "model": names[model], "total_ms": float(total), "on_device": not bool(in_time)}
        for way, model, total, in_time in zip(
            network_ms, outcome.chosen, outcome.latency_ms, outcome.on_time, strict=True
        )
    ]


def _figures(latency_ms: float, accuracy: float, attainment: float) -> dict[str, float]:
    return {"latency_ms": float(latency_ms), "accuracy_pct": 100 * accuracy, "attainment_pct": 100 * attainment}


def _usage(shares: Any) -> dict[str, float]:
    names = list(paper.TABLE_III)
    return {name: round(100 * float(share), 2) for name, share in zip(names, shares, strict=True) if share >= LEAST_USE}
