"""Candidates beside their parent, and the best policy with them beside the best one without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from calibration.optimizing.making import operations
from calibration.optimizing.verdict import Verdict, judged
from calibration.starter.calibrate import of_models
from jetsel.calibrate.calibrating import Calibrated, calibrate
from jetsel.calibrate.judge.decision import InstallRequest
from jetsel.calibrate.record.recording import LoadedRecording, Recording, Times
from jetsel.features import NAMES
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.zoo import STARTER
from jetsel.zoo.manifest import read_manifest
from jetsel.zoo.onnx_model import read_model
from tests.unit.calibrate.recorded import bound, drawn

SERVED = ("s", "l")


def with_candidates(seed: int) -> Recording:
    """Models s, m and l; `m-int8` answers what `m` answers at half its time, and `noise` is slow and random."""
    base = drawn(seed, 300)
    noise = np.random.default_rng(9).normal(size=base.logits[0].shape).astype(np.float32)
    logits = np.stack([base.logits[0], base.logits[1], base.logits[1], noise, base.logits[2]])
    names = ("s", "m-int8", "m", "noise", "l")
    costs_ms = {"s": 1.0, "m-int8": 1.5, "m": 3.0, "noise": 9.0, "l": 10.0}
    features = np.random.default_rng(10).random((300, len(NAMES)), np.float32)
    return replace(base, models=names, logits=logits, costs_ms=costs_ms, features=features, feature_names=NAMES)


def verdict_on(recording: Recording, refused: dict[str, str], max_drop: float = 60.0) -> Verdict:
    def compare(names: Sequence[str]) -> Calibrated:
        only = of_models(recording, [name for name in recording.models if name in names])
        hashes = {name: name[0] * 64 for name in only.models}
        names = tuple(map(str, range(only.logits.shape[2])))
        loaded = LoadedRecording(only, Times(0.01, {}, None), bound(hashes), names)
        return calibrate(loaded, InstallRequest(), lambda _: 0.01, lambda *_: None)

    return judged(recording, "l", SERVED, max_drop, 0.5, refused, compare)


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return verdict_on(with_candidates(1), {"m": "too slow"})


def test_candidates_are_judged_beside_their_parent_and_by_the_policy_that_runs_them(verdict: Verdict) -> None:
    by_name = {one.name: one for one in verdict.models}
    assert [one.name for one in verdict.models] == ["s", "m-int8", "m", "noise", "l"]
    assert verdict.entered == ["m-int8"]
    assert by_name["m-int8"].in_front
    assert by_name["m"].left_out == "too slow"
    assert by_name["l"].agreement == 1.0
    assert by_name["l"].drop == 0
    lost = 100 * (by_name["l"].top1 - by_name["m"].top1)
    assert abs(by_name["m"].drop - lost) < 1e-9
    assert "--max-drop allows 60" in (by_name["noise"].left_out or "")
    assert "noise" not in {name for _, _, name in verdict.front}


def test_a_candidate_as_good_and_faster_is_in_the_best_policy_and_saves_time(verdict: Verdict) -> None:
    trade = verdict.trade
    assert trade is not None
    assert trade.is_better
    assert "m-int8" in trade.models
    assert trade.after_ms < trade.before_ms


def test_the_starter_family_has_as_many_operations_as_its_manifests_say() -> None:
    plain = with_fixed_size(read_model(STARTER / "m.onnx"), 64, 64)
    assert operations(plain) == read_manifest(STARTER / "m.json").multiply_accumulates
