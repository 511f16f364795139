"""What a calibration expects to see: tenths of each feature, and how far photographs are from them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy.stats import entropy

from jetsel.artefact.calibration import Bins, bins_of
from jetsel.daemon.drift import stability_index

DRAW = np.random.default_rng(7)


def test_a_tenth_of_the_values_lies_in_each_bin_and_each_value_in_the_bin_that_counted_it() -> None:
    values = DRAW.normal(size=1000).astype(np.float32)
    found = bins_of(values)
    assert found.shares == pytest.approx([0.1] * 10, abs=0.002)
    counts = np.bincount(found.of(values), minlength=10)
    assert counts / 1000 == pytest.approx(found.shares)


def test_values_that_many_photographs_share_make_fewer_bins_and_none_is_empty() -> None:
    values = np.repeat([0.0, 1.0, 5.0], [600, 300, 100]).astype(np.float32)
    found = bins_of(values)
    assert found.shares == pytest.approx((0.6, 0.3, 0.1))
    assert found.of(np.array([-1.0, 0.0, 0.5, 1.0, 9.0], np.float32)).tolist() == [0, 0, 1, 1, 2]
    assert bins_of(np.zeros(50, np.float32)) == Bins((), (1.0,))


def test_the_index_is_the_sum_of_both_relative_entropies_and_small_for_photographs_of_the_same_kind() -> None:
    values = DRAW.normal(size=5000).astype(np.float32)
    known = bins_of(values)
    moved = known.of(DRAW.normal(0.7, 1, 5000).astype(np.float32))
    seen = np.bincount(moved, minlength=10) / 5000
    both = entropy(seen, known.shares) + entropy(known.shares, seen)
    assert stability_index(known.shares, moved) == pytest.approx(both, rel=0.01)
    assert both > 0.25
    assert stability_index(known.shares, known.of(DRAW.normal(size=500).astype(np.float32))) < 0.1


def test_bins_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="one entry more than edges"):
        msgspec.json.decode(b'{"edges": [1, 2], "shares": [0.5, 0.5]}', type=Bins)
