"""What MODI's tables add up: budgets of storage, loads spread over requests, and the time of a transfer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.papers.modi.files import EIGHT, RAW, File
from calibration.papers.modi.gains import Device, alone, given, offered, prepared, same_for_all
from calibration.papers.modi.loading import Took, beside_large
from calibration.papers.modi.networks import Network, as_mdinference
from calibration.papers.modi.storage import fitting
from jetsel.calibrate.record.recording import Recording
from jetsel.zoo import STARTER, scan

XS = scan([STARTER]).families["starter"].models[0]


def file(model: str, path: str, size_bytes: int, right: float) -> File:
    return File("family", model, RAW, Path(path), size_bytes, size_bytes, right, XS.manifest.input, 64)


TWO_SIZES_OF_ONE_NET = [file("a-96", "a", 18, 0.4), file("a-224", "a", 18, 0.8)]
FAMILY = [*TWO_SIZES_OF_ONE_NET, file("b", "b", 5, 0.7), file("c", "c", 6, 0.5)]


@pytest.mark.parametrize(
    ("budget", "most", "best"),
    [
        (4, 0, None),  # nothing fits, and nothing is right 0 times
        (10, 1, 0.7),  # b or c
        (11, 2, 0.7),  # b and c
        (18, 2, 0.8),  # the net of two sizes is stored once
        (23, 3, 0.8),  # it and b: 18 + 5
        (29, 4, 0.8),  # all: 18 + 5 + 6
    ],
)
def test_files_fit_a_budget_together_and_a_shared_one_counts_once(budget: int, most: int, best: float | None) -> None:
    assert fitting(FAMILY, budget, lambda file: file.size_bytes) == (most, best)


def test_the_load_is_spread_over_requests() -> None:
    took = Took(photograph_ms=5, load_ms=80, run_ms=15, later_photograph_ms=2, later_run_ms=8, runtime_ms=30)
    # 5 + 80 + 15 once, then 2 + 8 each: (100 + 9 x 10) / 10
    assert [took.amortised_ms(requests) for requests in (1, 10)] == [100, 19]


def test_a_transfer_is_the_round_trip_and_the_bytes_over_the_bandwidth() -> None:
    network = Network(round_trip_ms=70, up_megabits_per_s=6)
    assert network.transfer_ms(75_000) == pytest.approx(70 + 100)  # 600 kbit at 6 Mbit/s
    assert network.ends_ms([75_000], np.random.default_rng(0)) is None  # whose variation nobody published


def test_a_network_of_mdinference_takes_its_fitted_median_for_its_mean_photograph() -> None:
    network = as_mdinference("university", 21)
    assert network.transfer_ms(51_900) == pytest.approx(np.exp(3.879))
    low, high = network.ends_ms([51_900], np.random.default_rng(0))
    # 200 draws of a lognormal around exp(3.879): 1.645 deviations of 0.583 either way are exp(2.92) and exp(4.84)
    assert np.log([low, high]) == pytest.approx([2.92, 4.84], abs=0.25)


def test_a_plan_is_worth_what_its_cascade_gives_and_nothing_is_held_where_nothing_fits() -> None:
    """Of 100 images `small` is right on the first 60 and sure of these, `large` on the last 90: together on all."""
    logits = np.zeros((2, 100, 2), np.float32)
    logits[0, :60, 0], logits[0, 60:, 1] = 4.0, 0.5
    logits[1, 10:, 0], logits[1, :10, 1] = 3.0, 3.0
    said = Recording(
        models=("small", "large"),
        logits=logits,
        classes=np.zeros(100, np.int64),
        features=np.zeros((100, 1), np.float32),
        costs_ms={"small": 1.0, "large": 10.0},
    )
    family = prepared("two", said, said, {"small": {"s": 1_000_000}, "large": {"l": 5_000_000}})
    devices = [Device(6e6, 100.0, 1.0, (1.0,)), Device(1.5e6, 100.0, 1.0, (1.0,)), Device(6e6, 5.0, 1.0, (1.0,))]
    offers = [offered(family, device, 0) for device in devices]
    draw = np.random.default_rng(0)
    plans = [given([family], [one], device, draw) for one, device in zip(offers, devices, strict=True)]
    singles = [given([family], [alone(one)], device, draw) for one, device in zip(offers, devices, strict=True)]
    figures = [[one.storage_mb, one.both, one.expected] for one in plans]
    np.testing.assert_allclose(figures, [[6, 1.0, 1.0], [1, 0.6, 0.6], [1, 0.6, 0.6]])
    np.testing.assert_allclose([[one.storage_mb, one.both] for one in singles], [[5, 0.9], [1, 0.6], [1, 0.6]])
    assert same_for_all([[alone(one)] for one in offers], devices) == [("small",)], "0.9 once is less than 0.6 thrice"
    assert given([family], [offers[0]], Device(0.5e6, 100.0, 1.0, (1.0,)), draw).storage_mb == 0


def test_eight_bits_are_compared_under_one_condition_and_for_large_files_alone() -> None:
    def took(load_ms: float) -> Took:
        return Took(0.0, load_ms, 1.0, 0.0, 1.0, 0.0)

    eight = File("family", "a", EIGHT, Path("a8"), 1, 1, 0.8, XS.manifest.input, 64)
    large, small = file("a", "a", 5_000_000, 0.8), file("b", "b", 1_000_000, 0.8)
    found = {(large, 1, True): took(80.0), (eight, 1, True): took(20.0), (small, 1, True): took(1.0)}
    assert beside_large(found | {(large, 2, True): took(1.0)}, 1, True, "load_ms") == "0.25 (0.25 to 0.25)"
