"""The sentences of a comparison, each with the numbers that it was made of."""

from __future__ import annotations

import re

import msgspec

from jetsel.calibrate.judge.comparing import sentences
from jetsel.calibrate.judge.findings import FittedChain, PolicyDifference, Result, Spread
from tests.unit.calibrate.report import sample


def result(name: str, top1: float, top5: float, mean_ms: float) -> Result:
    """Beside a best single model of 60 % and 80 % in 10 ms."""
    against = PolicyDifference(100 * (top1 - 0.6), 100 * (top5 - 0.8), mean_ms / 10)
    coin = None if mean_ms < 5 else 0.6
    plain = sample.result(name, top1, top5, mean_ms, energy=False)
    return msgspec.structs.replace(plain, coin=coin, vs_best_single=against)


CHAIN = FittedChain(k=5, links=[], chooser_ms=0.25, pays_below_ms=0.2)
POLICIES = {
    "single:l": result("single:l", 0.6, 0.8, 10.0),
    "chain": result("chain", 0.58, 0.81, 8.8),
    "cascade": result("cascade", 0.6004, 0.8, 5.0),
    "multiplexer": result("multiplexer", 0.61, 0.79, 12.5),
}
BOUNDS = {"best single": result("best single", 0.6, 0.8, 10.0), "oracle": result("oracle", 0.75, 0.9, 4.0)}


def said(criterion: str = "top1", chain: FittedChain = CHAIN, labels_from: str | None = None) -> list[str]:
    return sentences(POLICIES, BOUNDS, "l", chain, criterion, labels_from)


def test_every_policy_is_set_beside_the_best_single_model() -> None:
    chain, cascade, multiplexer, better, *_ = said()
    assert re.search("chain saves 12 % .* loses 2.0 points", chain)
    assert re.search("cascade saves 50 % .* as accurate", cascade)
    assert re.search("multiplexer takes 25 % more .* gains 1.0 points", multiplexer)
    assert better.startswith("cascade is both faster and more accurate")


def test_a_difference_that_is_not_there_is_no_saving() -> None:
    close = {"chain": result("chain", 0.6, 0.8, 10.04)}
    text = sentences(close, BOUNDS, "l", CHAIN, "top1", None)[0]
    assert re.search("chain takes as much time as l and is as accurate", text)


def test_every_policy_is_set_beside_a_coin() -> None:
    assert "chain -2.0, cascade +0.0 and multiplexer +1.0" in said()[4]
    faster = {"chain": result("chain", 0.58, 0.81, 1.0)}
    assert not any("randomly" in one for one in sentences(faster, BOUNDS, "l", CHAIN, "top1", None))


def test_the_oracle_is_set_beside_the_best_single_model() -> None:
    assert "would be right on 75.0 % in 4.00 ms" in said()[5]
    assert "60.0 % in 10.00 ms" in said()[5]


def test_top5_has_its_own_points() -> None:
    text = said("top5")
    assert text[0].count("gains 1.0 points") == text[2].count("loses 1.0 points") == 1
    assert not any("both faster" in sentence for sentence in text)
    assert "would be right on 90.0 % in 4.00 ms" in text[4]


def test_energies_are_said_where_they_are_known() -> None:
    def metered(one: Result, energy_mj: float) -> Result:
        against = msgspec.structs.replace(one.vs_best_single, energy_ratio=energy_mj / 40)
        spread = Spread(energy_mj, energy_mj, energy_mj)
        return msgspec.structs.replace(one, energy_mj=spread, vs_best_single=against)

    policies = {"chain": metered(POLICIES["chain"], 30.0), "cascade": metered(POLICIES["cascade"], 44.0)}
    bounds = {"best single": metered(BOUNDS["best single"], 40.0), "oracle": metered(BOUNDS["oracle"], 9.5)}
    chain = msgspec.structs.replace(CHAIN, chooser_mj=1.25)
    found = sentences(policies, bounds, "l", chain, "top1", None)
    assert "saves 25 % of its energy" in found[0]
    assert "takes 10 % more energy" in found[1]
    assert "in 4.00 ms and 9.50 mJ" in found[4]
    assert "in 10.00 ms and 40.00 mJ" in found[4]
    assert "0.250 ms and 1.250 mJ" in found[5]


def test_agreement_comes_before_everything() -> None:
    assert "agrees with l's" in said(labels_from="l")[0]
