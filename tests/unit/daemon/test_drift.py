"""Drift: what is seen beside what a calibration expects, which is tenths of each feature."""

import cv2
import msgspec
import numpy as np
import pytest
from scipy.stats import entropy

from jetsel import image, wire
from jetsel.artefact.calibration import Confidence, ExpectedStatistics, FeatureBins, fit_bins
from jetsel.daemon.drift import FEWEST, KEPT, Drift, stability_index
from jetsel.features import NAMES, SIZE, WORKING_PX, extract
from jetsel.wire import Answer, Ran
from tests.unit.client.peer import Seen, answer

LIMITS = image.Limits(16_000_000, 50_000_000)
ANSWER = answer(Seen(wire.Classify(1, "x"), b""))


def pictures(seed: int, count: int, gain: float = 1.0) -> list[bytes]:
    """Drawn photographs, blurred noise on a colour of its own, as PNG."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        noise = draw.normal(draw.uniform(60, 190, 3), draw.uniform(5, 50), (24, 32, 3))
        levels = (cv2.GaussianBlur(noise, (0, 0), draw.uniform(0.3, 2)) * gain).clip(0, 255).astype(np.uint8)
        found.append(cv2.imencode(".png", levels)[1].tobytes())
    return found


@pytest.fixture(scope="module")
def expected() -> ExpectedStatistics:
    features = np.stack([extract(image.decode(data, LIMITS, 64).bgr) for data in pictures(1, 600)])
    return ExpectedStatistics(
        dict(zip(NAMES, map(fit_bins, features.T), strict=True)),
        {"xs": Confidence(0.7, 0.2), "xl": Confidence(0.6, 0.2)},
    )


@pytest.fixture
def drift(expected: ExpectedStatistics) -> Drift:
    return Drift(expected, "cascade", WORKING_PX)


def shown(drift: Drift, photographs: list[bytes]) -> None:
    for data in photographs:
        drift.add_image(image.decode(data, LIMITS, 64), memoryview(data), LIMITS)


def said(confidence: float, model: str = "xs") -> Answer:
    return msgspec.structs.replace(ANSWER, ran=[Ran(model, "first", confidence, 1.0, 1)])


def test_nothing_is_told_of_few_photographs_and_nothing_is_hinted_at_where_they_are_alike(drift: Drift) -> None:
    shown(drift, pictures(2, FEWEST - 1))
    early = drift.status()
    assert (early.indices, early.highest, early.median_index) == ({}, None, None)
    assert early.reason == f"needs {FEWEST} images, has {FEWEST - 1}"
    shown(drift, pictures(3, FEWEST))
    found = drift.status()
    assert (found.photographs, found.reason, found.hint) == (2 * FEWEST - 1, None, None)
    assert set(found.indices) == set(NAMES)


def test_darker_photographs_are_told_with_the_feature_that_moved_most(drift: Drift) -> None:
    shown(drift, pictures(2, KEPT))
    shown(drift, pictures(4, KEPT, gain=0.4))
    found = drift.status()
    assert found.photographs == KEPT, "the last ones alone"
    assert found.highest is not None
    assert "brightness" in found.highest
    assert found.indices[found.highest] > 1
    assert found.hint.endswith("recalibrate on recent images: jetsel calibrate IMAGES")


def test_images_of_another_size_are_told_although_the_calibrations_were_all_of_one(drift: Drift) -> None:
    large = [cv2.resize(cv2.imdecode(np.frombuffer(one, np.uint8), 1), (320, 240)) for one in pictures(2, KEPT)]
    shown(drift, [cv2.imencode(".png", one)[1].tobytes() for one in large])
    indices = drift.status().indices
    assert min(indices[name] for name in SIZE) > 5


def test_every_so_manyth_answer_is_looked_at(drift: Drift) -> None:
    assert [drift.add_answer("cascade", said(0.7), 3) for _ in range(7)] == [False, False, True] * 2 + [False]
    assert not any(drift.add_answer("cascade", said(0.7), 0) for _ in range(10))


def test_a_shift_of_the_default_policy_s_confidences_is_reported_if_it_exceeds_chance(
    drift: Drift,
) -> None:
    for _ in range(FEWEST):
        drift.add_answer("cascade", said(0.55), 0)
        drift.add_answer("single:xl", said(0.1, "xl"), 0)
    low, unseen = drift.status().confidences
    assert (low.model, low.answers, low.calibrated, low.is_significant) == ("xs", FEWEST, 0.7, True)
    assert low.seen == pytest.approx(0.55)
    assert (unseen.model, unseen.answers, unseen.seen, unseen.is_significant) == ("xl", 0, None, False)
    hint = drift.status().hint
    assert hint.startswith("the confidence of xs fell from 0.70 to 0.55: recalibrate")


DRAW = np.random.default_rng(7)


def test_a_tenth_of_the_values_lies_in_each_bin_and_each_value_in_the_bin_that_counted_it() -> None:
    values = DRAW.normal(size=1000).astype(np.float32)
    found = fit_bins(values)
    assert found.shares == pytest.approx([0.1] * 10, abs=0.002)
    counts = np.bincount(found.bins_of(values), minlength=10)
    assert counts / 1000 == pytest.approx(found.shares)


def test_values_that_many_photographs_share_make_fewer_bins_and_none_is_empty() -> None:
    values = np.repeat([0.0, 1.0, 5.0], [600, 300, 100]).astype(np.float32)
    found = fit_bins(values)
    assert found.shares == pytest.approx((0.6, 0.3, 0.1))
    assert found.bins_of(np.array([-1.0, 0.0, 0.5, 1.0, 9.0], np.float32)).tolist() == [0, 0, 1, 1, 2]
    constant = fit_bins(np.full(50, 6, np.float32))
    assert constant.shares == (0, 1, 0)
    assert constant.bins_of(np.array([5, 6, 7], np.float32)).tolist() == [0, 1, 2]


def test_the_index_is_the_sum_of_both_relative_entropies_and_small_for_photographs_of_the_same_kind() -> None:
    values = DRAW.normal(size=5000).astype(np.float32)
    known = fit_bins(values)
    moved = known.bins_of(DRAW.normal(0.7, 1, 5000).astype(np.float32))
    seen = np.bincount(moved, minlength=10) / 5000
    both = entropy(seen, known.shares) + entropy(known.shares, seen)
    assert stability_index(known.shares, moved) == pytest.approx(both, rel=0.01)
    assert both > 0.25
    assert stability_index(known.shares, known.bins_of(DRAW.normal(size=500).astype(np.float32))) < 0.1


def test_bins_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="one entry more than edges"):
        msgspec.json.decode(b'{"edges": [1, 2], "shares": [0.5, 0.5]}', type=FeatureBins)


def test_many_more_doubts_than_calibrated_are_drift() -> None:
    drift = Drift(ExpectedStatistics({}, {}), "cascade", 4096)
    for number in range(FEWEST - 1):
        drift.count_doubt(0.8, is_in_doubt=number % 2 == 0)
    assert drift.status().hint is None
    assert drift.status().refusals is not None
    assert drift.status().refusals.seen is None, "they are few"
    drift.count_doubt(0.8, is_in_doubt=False)
    status = drift.status()
    assert (status.refusals.seen, status.refusals.is_significant) == (0.5, True)
    assert (status.hint or "").startswith("50% of the requests are in doubt; 20% were expected: recalibrate")
    steady = Drift(ExpectedStatistics({}, {}), "cascade", 4096)
    draw = np.random.default_rng(0)
    for _ in range(500):
        steady.count_doubt(0.8, is_in_doubt=bool(draw.random() < 0.2))
    assert steady.status().hint is None
