"""The books by hand: what models and policies took, what choosing was of it, and what was saved."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from jetsel.daemon.metering.accounts import Accounts
from jetsel.daemon.metering.bill import CHOOSER, DECODE, of_model
from jetsel.daemon.metering.spending import Kind, Spent, best_single, saved_j
from jetsel.policies.calibration import Calibration
from jetsel.power.ledger import Activity, Ledger
from tests.unit.daemon.families import calibration_of, put_family
from tests.unit.power.playing import Clock, Playing, ns

SERVED = {"cats": ["s", "l"]}
SMALL, LARGE = of_model("cats", "s"), of_model("cats", "l")


class Scene:
    """A ledger over 60 s at 8 W, of which 3 W are idle: what runs alone takes 5 W."""

    def __init__(self, idle_w: float | None = 3.0) -> None:
        idle = None if idle_w is None else SimpleNamespace(mean_w=idle_w, half_width_w=0.0)
        self.clock = Clock()
        self.ledger = Ledger(Playing([i * 0.01 for i in range(6001)], [8.0] * 6001), idle, self.clock)
        self.accounts = Accounts(self.ledger, self.clock)

    def does(self, what: str, seconds: float) -> Activity:
        """One activity, from now on, after 10 ms of rest."""
        self.clock.now_ns += ns(0.01)
        activity = self.ledger.begin(what)
        self.clock.now_ns += ns(seconds)
        self.ledger.end(activity)
        return activity

    def request(self, policy: str | None, *spans: tuple[str, float]) -> None:
        lines = [(self.does(what, seconds), 1.0) for what, seconds in spans]
        self.accounts.over("cats", policy, "top1", lines)

    def later(self) -> Accounts:
        self.clock.now_ns += ns(2.0)
        self.accounts.enter()
        return self.accounts


def test_models_and_policies_have_their_joules_means_and_watts() -> None:
    scene = Scene()
    scene.request("cascade", (DECODE, 0.1), (CHOOSER, 0.02), (SMALL, 0.1))
    scene.request("cascade", (DECODE, 0.1), (CHOOSER, 0.02), (SMALL, 0.1), (LARGE, 0.4))
    scene.request("single:l", (DECODE, 0.1), (LARGE, 0.6))
    accounts = scene.later()
    small, large = accounts.models(SERVED)
    assert (small.family, small.model, small.photographs) == ("cats", "s", 2)
    assert (small.joules, small.mean_mj, small.mean_w) == pytest.approx((1.0, 500.0, 5.0))
    assert (large.joules, large.mean_mj, large.mean_w) == pytest.approx((5.0, 2500.0, 5.0))
    cascade, single = accounts.policies({"cats": None})
    assert (cascade.family, cascade.policy, cascade.answers) == ("cats", "cascade", 2)
    assert (cascade.joules, cascade.mean_mj) == pytest.approx((0.2 + 1.0 + 2.0, 1600.0))
    assert (single.policy, single.joules) == ("single:l", pytest.approx(3.0))
    assert accounts.joules(DECODE) == pytest.approx(1.5)
    assert accounts.joules(CHOOSER) == pytest.approx(0.2)
    assert accounts.chooser_share() == pytest.approx(0.2 / 6.2)


def test_what_is_not_settled_yet_waits() -> None:
    scene = Scene()
    scene.request("cascade", (SMALL, 0.1))
    scene.accounts.enter()
    assert scene.accounts.models(SERVED) == []
    assert len(scene.later().models(SERVED)) == 1


def test_a_request_without_an_answer_counts_for_its_models_and_for_no_policy() -> None:
    scene = Scene()
    scene.request(None, (DECODE, 0.1), (SMALL, 0.1))
    accounts = scene.later()
    assert accounts.models(SERVED)[0].joules == pytest.approx(0.5)
    assert accounts.policies({"cats": None}) == []


def test_a_batch_is_shared_among_its_requests_and_counted_for_each() -> None:
    scene = Scene()
    run = scene.does(LARGE, 0.4)
    for policy in ("chain", "chain", "single:l", "single:l"):
        scene.accounts.over("cats", policy, "top1", [(run, 0.25)])
    accounts = scene.later()
    (large,) = accounts.models(SERVED)
    assert (large.photographs, large.joules, large.mean_mj, large.mean_w) == pytest.approx((4, 2.0, 500.0, 5.0))
    assert [policy.joules for policy in accounts.policies({"cats": None})] == pytest.approx([1.0, 1.0])


def test_two_families_models_of_one_name_are_told_apart() -> None:
    scene = Scene()
    scene.request("p", (of_model("cats", "s"), 0.1))
    scene.accounts.over("dogs", "p", "top1", [(scene.does(of_model("dogs", "s"), 0.2), 1.0)])
    found = scene.later().models({"cats": ["s"], "dogs": ["s"]})
    assert [(model.family, model.joules) for model in found] == [
        ("cats", pytest.approx(0.5)),
        ("dogs", pytest.approx(1)),
    ]


def test_without_idle_power_answers_are_counted_and_energies_unknown() -> None:
    scene = Scene(idle_w=None)
    scene.request("cascade", (CHOOSER, 0.02), (SMALL, 0.1))
    accounts = scene.later()
    (small,) = accounts.models(SERVED)
    assert (small.photographs, small.joules, small.mean_mj, small.mean_w) == (1, None, None, None)
    (cascade,) = accounts.policies({"cats": None})
    assert (cascade.answers, cascade.joules) == (1, None)
    assert (accounts.joules(CHOOSER), accounts.chooser_share()) == (None, None)


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    """`s` was right on half of the photographs, `l` on all."""
    right = np.array([[True, True], [False, True]] * 3)
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    return calibration_of(folder, "cats", right=dict.fromkeys(("top1", "top5"), right))


def test_the_best_single_model_is_the_most_accurate_and_of_equals_the_cheapest(calibration: Calibration) -> None:
    assert best_single(calibration, "top1") == "l"
    calibration.right["top5"] = np.ones((6, 2), bool)
    assert best_single(calibration, "top5") == "s"


def test_saved_is_what_the_best_single_model_would_have_taken_more(calibration: Calibration) -> None:
    scene = Scene()
    scene.request("cascade", (CHOOSER, 0.1), (SMALL, 0.2))  # 1.5 J
    scene.request("cascade", (CHOOSER, 0.1), (SMALL, 0.1))  # 1 J
    scene.request("single:l", (LARGE, 0.4))  # 2 J
    cascade, single = scene.later().policies({"cats": calibration})
    assert (cascade.saved_j, cascade.saved_reason) == (pytest.approx(2 * 2.0 - 2.5), None)
    assert single.saved_j == pytest.approx(0.0)


def test_the_best_model_s_calibrated_energy_is_what_others_are_compared_with(calibration: Calibration) -> None:
    known = msgspec.structs.replace(calibration, energies_mj={"s": 100.0, "l": 3000.0})
    scene = Scene()
    scene.request("single:l", (LARGE, 2.0))  # 10 J: shares of its own runs are not asked
    scene.request("chain", (DECODE, 1.0), (CHOOSER, 0.02), (SMALL, 0.1))
    single, chain = scene.later().policies({"cats": known})
    assert single.saved_j == 0.0
    assert chain.saved_j == pytest.approx(3.0 - 0.6), "decoding is the same either way"


def test_the_best_single_model_s_own_policy_saves_nothing_whatever_its_shares_were(calibration: Calibration) -> None:
    scene = Scene()
    scene.request("single:l", (LARGE, 0.2))
    scene.request("chain", (CHOOSER, 0.02), (LARGE, 0.6))
    single, chain = scene.later().policies({"cats": calibration})
    assert (single.saved_j, single.saved_reason) == (0.0, None)
    assert chain.saved_j == pytest.approx(2.0 - 3.1)


def test_where_the_budget_had_a_cheaper_model_stand_in_for_the_best_its_policy_saved(calibration: Calibration) -> None:
    scene = Scene()
    scene.request("single:l", (LARGE, 0.4))
    scene.request("single:l", (CHOOSER, 0.02), (SMALL, 0.1))
    (single,) = scene.later().policies({"cats": calibration})
    assert single.saved_j == pytest.approx(2.0 - 0.6)


def test_what_was_saved_is_unknown_with_the_reason(calibration: Calibration) -> None:
    spent = {Kind("top1", None): Spent(2, 2, 1.0, 0.5)}
    assert saved_j(spent, None, lambda _: 1.0) == (None, "without a calibration no model is known to be best")
    assert saved_j({Kind("top1", None): Spent(2)}, calibration, lambda _: 1.0) == (
        None,
        "no answer's energy was measured",
    )
    amount, reason = saved_j(spent, calibration, lambda _: None)
    assert amount is None
    assert reason == "the energy of l, the best single model, is not known: no run of it was measured"
