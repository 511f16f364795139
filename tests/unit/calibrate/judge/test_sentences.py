"""The sentences of a comparison, each with the numbers that it was made of."""

from __future__ import annotations

import re

import msgspec

from jetsel.calibrate.judge.comparing import sentences
from jetsel.calibrate.judge.findings import PolicyDifference, Result
from tests.unit.calibrate.report import sample


def result(name: str, top1: float, top5: float, mean_ms: float) -> Result:
    """Beside a best single model of 60 % and 80 % in 10 ms."""
    against = PolicyDifference(100 * (top1 - 0.6), mean_ms / 10)
    coin = None if mean_ms < 5 else 0.6
    plain = sample.result(name, top1, top5, mean_ms, energy=False)
    return msgspec.structs.replace(plain, coin=coin, vs_best_single=against)


POLICIES = {
    "single:l": result("single:l", 0.6, 0.8, 10.0),
    "chain": result("chain", 0.58, 0.81, 8.8),
    "cascade": result("cascade", 0.6004, 0.8, 5.0),
    "multiplexer": result("multiplexer", 0.61, 0.79, 12.5),
}
BOUNDS = {"best single": result("best single", 0.6, 0.8, 10.0), "oracle": result("oracle", 0.75, 0.9, 4.0)}


def said(labels_from: str | None = None) -> list[str]:
    return sentences(POLICIES, BOUNDS, "l", sample.CHAIN, labels_from)


def test_every_policy_is_set_beside_the_best_single_model() -> None:
    chain, cascade, multiplexer, better, *_ = said()
    assert re.search("chain saves 12 % .* loses 2.0 points", chain)
    assert re.search("cascade saves 50 % .* as accurate", cascade)
    assert re.search("multiplexer takes 25 % more .* gains 1.0 points", multiplexer)
    assert better.startswith("cascade is both faster and more accurate")


def test_agreement_comes_before_everything() -> None:
    assert "agrees with l's" in said(labels_from="l")[0]
