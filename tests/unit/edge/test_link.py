"""The running estimate of the network time: conservative at first, then a line through what was seen."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.edge.link import LinkEstimate


def test_before_there_is_evidence_it_is_twice_the_slowest_and_more_for_more_bytes() -> None:
    link = LinkEstimate()
    assert link.estimate(1000) is None
    link.observe(1000, 10.0)
    link.observe(1000, 30.0)
    assert link.estimate(1000) == (60.0, 0.0)
    assert link.estimate(500) == (60.0, 0.0)
    assert link.estimate(3000) == (180.0, 0.0)


def test_latency_and_bandwidth_are_told_apart_by_sizes() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(1)
    for size in chance.integers(10_000, 200_000, 60).tolist():
        link.observe(size, 40 + size / 2500)
    for size in (0, 50_000, 400_000):
        found = link.estimate(size)
        assert found is not None
        assert found[0] == pytest.approx(40 + size / 2500, rel=1e-3)


def test_photographs_of_one_size_give_no_bandwidth_and_noise_a_deviation() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(2)
    for _ in range(400):
        link.observe(50_000, float(chance.normal(60, 8)))
    mean_ms, deviation_ms = link.estimate(100_000) or (0, 0)
    assert mean_ms == pytest.approx(60, abs=6)
    assert 4 < deviation_ms < 14


def test_a_path_that_changes_is_followed() -> None:
    link = LinkEstimate()
    for time_ms in [20.0] * 100 + [200.0] * 60 + [20.0] * 60:
        link.observe(50_000, time_ms)
    found = link.estimate(50_000)
    assert found is not None
    assert found[0] == pytest.approx(20, abs=15)
