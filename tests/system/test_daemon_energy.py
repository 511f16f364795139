"""A real daemon with a real sampler on the files of a TX2: what answers, models and policies took."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.system.boards import IDLE_W, Board, power_of, reads
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.unit.daemon.families import calibrate, put_family
from tests.waiting import until


def test_an_answer_s_energy_is_what_the_rail_read_above_idle_for_as_long_as_it_was_worked_on(
    board: Board, start: Start, connect: Connect, picture: bytes
) -> None:
    board.calibrate()
    peer = connect(start(board.config()))
    until(lambda: power_of(peer)["idle_w"] == IDLE_W)
    for watts in (8.0, 13.0, 3.0):
        board.power(watts)
        reads(peer, watts)
        time.sleep(0.1)  # so that what is read around the request's edges is this power, too
        answer = until(lambda: (found := peer.classify(picture, policy="chain"))["energy_mj"] is not None and found)
        stages = answer["stages_ms"]
        above_w = watts - IDLE_W
        least = above_w * (sum(stages["inference"]) + stages["features"])
        assert least <= answer["energy_mj"] + 1e-6
        assert answer["energy_mj"] <= above_w * (stages["total"] - stages["queue"]) + 1e-6
        assert answer["energy_uncertainty_mj"] >= 0
        assert (answer["energy_estimated"], answer["energy_reason"], answer["out_of_conditions"]) == (False, None, [])


def test_models_policies_and_choosing_add_up_to_what_was_taken(
    board: Board, start: Start, connect: Connect, picture: bytes, jpeg: bytes
) -> None:
    board.calibrate()
    board.power(8.0)
    daemon = start(board.config())
    peer = connect(daemon)
    until(lambda: power_of(peer)["idle_w"] == IDLE_W)
    reads(peer, 8.0)
    asked: list[dict[str, Any]] = [{"policy": "chain"}, {"policy": "cascade"}, {"model": "xl"}]
    for fields in asked * 5:
        peer.classify(jpeg, **fields)
    for _ in range(60):  # many at the same time, which run as batches and share what they overlap
        peer.send({"type": "classify", "policy": "chain"}, jpeg)
    for _ in range(60):
        assert peer.receive()["type"] == "answer"
    assert peer.classify(b"no picture")["type"] == "failure"
    until(lambda: sum(policy["answers"] for policy in power_of(peer)["policies"]) == 75)
    power = power_of(peer)
    policies = {policy["policy"]: policy for policy in power["policies"]}
    assert {name: policy["answers"] for name, policy in policies.items()} == {
        "chain": 65,
        "cascade": 5,
        "single:xl": 5,
    }
    models_j = sum(model["joules"] for model in power["models"])
    assert models_j + power["chooser_j"] == pytest.approx(sum(policy["joules"] for policy in policies.values()))
    assert power["chooser_share"] == pytest.approx(power["chooser_j"] / (models_j + power["chooser_j"]))
    assert power["decode_j"] > 0
    assert policies["single:xl"]["mean_w"] == pytest.approx(8.0 - IDLE_W), "it was always alone"
    for policy in policies.values():
        assert policy["saved_reason"] is None  # xl, the most accurate, has run
    assert (power["reason"], power["total_of"], power["power_mode"]) == (None, ["VDD_IN"], "0 MAXN")
    assert power["mean_w"] == pytest.approx(8.0)
    printed = jetsel("status", "--endpoint", daemon.endpoint).stdout
    assert "power: 8.00 W now, 8.00 W in the mean, 3.00 W idle (VDD_IN); power mode 0 MAXN" in printed
    assert "energy above idle by policy" in printed
    assert json.loads(jetsel("status", "--json", "--endpoint", daemon.endpoint).stdout)["power"]["total_of"] == [
        "VDD_IN"
    ]


def test_without_an_idle_measurement_energies_are_null_and_the_reason_says_what_to_do(
    board: Board, start: Start, connect: Connect, picture: bytes
) -> None:
    daemon = start(board.config())
    peer = connect(daemon)
    reason = until(lambda: "jetsel power calibrate" in (said := power_of(peer)["idle_reason"] or "") and said)
    assert reason == "idle power was not measured on jetson-tx2 in power mode 0 MAXN: run `jetsel power calibrate`"
    assert str(board.root / "idle" / "idle-") in daemon.log.read_text(), "where it was looked for is in the log"
    reads(peer, IDLE_W)
    answer = peer.classify(picture)
    assert (answer["energy_mj"], answer["energy_reason"], answer["energy_estimated"]) == (None, reason, False)
    board.calibrate()
    assert peer.ask({"type": "reload"})["changed"] == []
    assert power_of(peer)["idle_w"] == IDLE_W, "a reload reads it again"
    until(lambda: peer.classify(picture)["energy_mj"] is not None)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('sensor = "none"\n', '[power] sensor is "none"'),
        ('sysfs = "{empty}"\n', "no power sensor"),
    ],
)
def test_without_a_sensor_the_calibrated_energies_answer_and_are_marked_as_estimates(
    start: Start, connect: Connect, tmp_path: Path, jpeg: bytes, lines: str, reason: str
) -> None:
    folder = put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")
    known = {"energies_mj": {"cat-s": 10.0, "cat-l": 40.0}, "energies_half_mj": {"cat-s": 1.0, "cat-l": 2.0}}
    calibrate(folder, "cats", **known)
    (tmp_path / "empty").mkdir()
    models = f'[models]\nstarter = false\npaths = ["{folder}"]\n'
    daemon = start(f"[server]\n[power]\n{lines.format(empty=tmp_path / 'empty')}{models}")
    peer = connect(daemon)
    found = until(lambda: reason in (said := power_of(peer)["reason"]) and said)
    assert (power_of(peer)["idle_w"], power_of(peer)["idle_reason"]) == (None, found), "what is not known has a reason"
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_uncertainty_mj"]) == (40.0, 2.0)
    assert (answer["energy_estimated"], answer["energy_reason"]) == (True, None)
    shutil.rmtree(folder / "calibration")
    peer.ask({"type": "reload"})
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_reason"]) == (None, f"no meter: {found}")
    printed = " ".join(jetsel("status", "--endpoint", daemon.endpoint).stdout.split())  # a long line is folded
    assert f"power: not measured: {found}" in printed
    assert printed.count(found) == 1


def test_why_energies_are_not_known_is_in_the_json_and_once_below_the_table(
    start: Start, tmp_path: Path, jpeg: bytes
) -> None:
    daemon = start('[power]\nsensor = "none"\n')
    files = [tmp_path / name for name in ("one.jpg", "two.jpg")]
    for file in files:
        file.write_bytes(jpeg)
    lines = jetsel("classify", "--json", "--endpoint", daemon.endpoint, *files).stdout.splitlines()
    assert {json.loads(line)["energy_reason"] for line in lines} == {'no meter: [power] sensor is "none"'}
    printed = jetsel("classify", "--endpoint", daemon.endpoint, *files).stdout
    assert printed.count('energy not known: no meter: [power] sensor is "none"') == 1
