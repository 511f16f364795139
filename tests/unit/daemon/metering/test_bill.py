"""One request's bill: measured where that can be, else estimated by the calibration, else unknown with the reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from jetsel.daemon.metering.bill import DECODE, Bill, estimated, price
from jetsel.daemon.metering.watching import Watcher
from jetsel.policies import Evidence
from jetsel.policies.calibration import Calibration
from jetsel.policies.single import Single
from jetsel.power import Reading
from jetsel.power.ledger import Ledger
from jetsel.runtime import Flight
from jetsel.wire import Ran
from tests.unit.daemon.families import calibration_of, put_family
from tests.unit.power.playing import Clock, Playing, ns

MS = 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    """One second at 8 W, a sample every millisecond; 3 W are idle."""
    source = Playing([i * 0.001 for i in range(1001)], [8.0] * 1001)
    return Ledger(source, SimpleNamespace(mean_w=3.0, half_width_w=0.0), clock)


def flight(bill: Bill) -> Flight:
    return Flight(Single("m"), Evidence(None, None), "top1", lambda _: np.zeros((1, 3, 2, 2), np.float32), tag=bill)


def test_a_request_is_measured_over_all_that_it_does_and_its_part_of_a_batch(ledger: Ledger, clock: Clock) -> None:
    bill, other = Bill(ledger), Bill(ledger)
    watcher = Watcher(ledger, "cats")
    clock.now_ns = ns(0.1)
    with bill.doing(DECODE):
        clock.now_ns += ns(0.02)
    ended = watcher.choice(flight(bill))
    clock.now_ns += ns(0.01)
    ended()
    ended = watcher.run("m", [flight(bill), flight(other)])
    clock.now_ns += ns(0.1)
    ended()
    # 5 W over 20 ms, 10 ms, and half of 100 ms.
    assert bill.measured(MS, None).energy_mj == pytest.approx(5 * 80)
    assert other.measured(MS, None).energy_mj == pytest.approx(5 * 50)
    assert [activity.what for activity, _ in bill.lines] == ["decode", "chooser", "model:cats/m"]


def test_a_request_shorter_than_the_sensor_s_period_is_not_measured(ledger: Ledger, clock: Clock) -> None:
    bill = Bill(ledger)
    clock.now_ns = ns(0.1)
    with bill.doing(DECODE):
        clock.now_ns += ns(0.005)
    reading = bill.measured(7 * MS, None)
    assert reading.energy_mj is None
    assert reading.reason is not None
    assert "5 ms" in reading.reason
    assert bill.measured(5 * MS, None).energy_mj == pytest.approx(25)


def test_where_nothing_is_metered_nothing_is_noted(ledger: Ledger) -> None:
    bill = Bill(None)
    with bill.doing(DECODE):
        pass
    Watcher(ledger, "cats").run("m", [flight(bill)])()
    Watcher(ledger, "cats").choice(flight(bill))()
    assert (bill.lines, bill.is_metered) == ([], False)
    assert bill.measured(MS, "no meter: none is there") == Reading(None, "no meter: none is there")
    assert ledger.totals() == {}


def test_a_batch_of_metered_and_unmetered_requests_is_divided_by_all(ledger: Ledger, clock: Clock) -> None:
    bill = Bill(ledger)
    clock.now_ns = ns(0.1)
    ended = Watcher(ledger, "cats").run("m", [flight(Bill(None)), flight(bill)])
    clock.now_ns += ns(0.1)
    ended()
    assert bill.measured(MS, None).energy_mj == pytest.approx(250)


def test_what_still_runs_for_a_request_that_has_its_answer_is_left_out(ledger: Ledger, clock: Clock) -> None:
    bill = Bill(ledger)
    watcher = Watcher(ledger, "cats")
    clock.now_ns = ns(0.1)
    slow, quick = watcher.run("l", [flight(bill)]), watcher.run("s", [flight(bill)])
    clock.now_ns += ns(0.1)
    quick()
    assert bill.measured(MS, None).energy_mj == pytest.approx(250)
    slow()


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    energies = {"energies_mj": {"s": 10.0, "l": 50.0}, "energies_half_mj": {"s": 0.5, "l": 1.0}}
    return calibration_of(folder, "cats", **energies, chooser_energy_mj=2.0)


def ran(*models: str) -> list[Ran]:
    return [Ran(model, "", 0.5, 1.0, 1) for model in models]


def test_the_estimate_adds_up_the_models_that_ran_and_the_choosing(calibration: Calibration) -> None:
    assert estimated(ran("s", "l"), False, calibration) == Reading(60.0, None, 0, 1.5)
    assert estimated(ran("s"), True, calibration) == Reading(12.0, None, 0, 0.5)


def test_an_estimate_without_known_intervals_has_none(calibration: Calibration) -> None:
    bare = msgspec.structs.replace(calibration, energies_half_mj={}, chooser_energy_mj=None)
    assert estimated(ran("s", "s"), True, bare) == Reading(20.0, None, 0, None)


def test_there_is_no_estimate_without_energies_or_of_an_unknown_model(calibration: Calibration) -> None:
    assert estimated(ran("s"), False, None) is None
    assert estimated(ran("s"), False, msgspec.structs.replace(calibration, energies_mj={})) is None
    found = estimated(ran("s", "new"), False, calibration)
    assert found == Reading(None, "the calibration has no energy of new")


def test_measured_comes_before_estimated_and_unknown_has_every_reason() -> None:
    known, unknown = Reading(5.0, None, 3, 0.1), Reading(None, "one sample", 1)
    assert price(known, Reading(7.0, None)) == (known, False)
    assert price(unknown, Reading(7.0, None)) == (Reading(7.0, None), True)
    assert price(unknown, None) == (unknown, False)
    assert price(unknown, Reading(None, "no energy of new")) == (
        Reading(None, "one sample; no energy of new", 1),
        False,
    )
