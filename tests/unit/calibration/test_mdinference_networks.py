"""Networks to simulate are what they say, and bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.papers.mdinference.networks import RecordedTimes, read
from jetsel.base.errors import ConfigError

CHANCE = np.random.default_rng


@pytest.mark.parametrize(
    ("text", "mean_ms"),
    [("normal:100,20", 100.0), ("lognormal:50,0.5", 50 * np.exp(0.125)), ("two-state:30,0,200,0,0.05,0.2", 64.0)],
)
def test_a_network_is_what_it_says(text: str, mean_ms: float) -> None:
    times_ms = read(text).draw(200_000, CHANCE(3))
    assert times_ms.shape == (200_000,)
    assert times_ms.min() >= 0
    assert times_ms.mean() == pytest.approx(mean_ms, rel=0.03)


def test_a_file_s_times_come_in_their_order_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "link.txt"
    path.write_text("10\n20\n30\n")
    times_ms = read(str(path)).draw(7, CHANCE(1)).tolist()
    assert times_ms[:3] == times_ms[3:6]
    assert sorted(times_ms[:3]) == [10, 20, 30]


def test_times_with_their_bytes_tell_what_more_bytes_take(tmp_path: Path) -> None:
    path = tmp_path / "link.txt"
    path.write_text(
        "".join(f"{30 + size / 1000 + 2 * (i % 2)} {size}\n" for i, size in enumerate([10_000, 20_000] * 9))
    )
    network = read(str(path))
    assert isinstance(network, RecordedTimes)
    times_ms = network.draw(18, CHANCE(1))
    for sent_bytes, expected_ms in ((10_000, 40), (15_000, 46), (20_000, 52), (90_000, 52)):
        assert (times_ms + network.extra_ms(sent_bytes)).mean() == pytest.approx(expected_ms)


@pytest.mark.parametrize(
    "text", ["normal:1", "normal:-1,2", "lognormal:a,b", "two-state:1,1,1,1,0,1", "nowhere.txt", "normal:nan,1"]
)
def test_a_network_that_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="examples: university"):
        read(text)
