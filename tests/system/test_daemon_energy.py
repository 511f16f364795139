"""A real daemon with a real sampler on the files of a TX2, whose power, mode and budget change while it runs."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jetsel.config import Power
from jetsel.power.idle import Idle, save
from jetsel.power.place import place
from tests.data.sysfs_trees import SYSFS
from tests.system.command import jetsel
from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.unit.daemon.families import calibrate, put_family

LIMIT_S = 120.0  # nothing here is about speed
IDLE_W = 3.0
MODES = "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=1 NAME=MAXQ >\n"


class Board:
    """The files of a TX2 below a folder, with what nvpmodel keeps beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = Path(shutil.copytree(SYSFS / "jetson-tx2", root / "sys", symlinks=True))
        (self._power,) = self.sysfs.glob("devices/3160000.i2c/i2c-0/0-0041/iio:device*/in_power0_input")
        (root / "etc").mkdir()
        (root / "etc/nvpmodel.conf").write_text(MODES)
        (root / "var/lib/nvpmodel").mkdir(parents=True)
        self.mode(0)
        self.power(IDLE_W)

    def power(self, watts: float) -> None:
        """Have VDD_IN read this; in one write of one length, as the sampler reads all the time."""
        with self._power.open("r+b", buffering=0) as file:
            file.write(b"%06d\n" % round(watts * 1e3))
            file.truncate()

    def mode(self, number: int) -> None:
        (self.root / "var/lib/nvpmodel/status").write_text(f"pmode:{number:04d} fmode:quiet\n")

    def calibrate(self) -> None:
        """Write down the idle power as `jetsel power calibrate` would find it here."""
        here = place(Power(sysfs=str(self.sysfs)))
        idle = Idle(
            mean_w=IDLE_W,
            half_width_w=0.0,
            drift_w_per_min=0.0,
            sampler_w=None,
            sampler_half_width_w=0.1,
            samples=10_000,
            seconds=10.0,
            rails=("VDD_IN",),
            board=here.board,
            power_mode=here.power_mode,
            measured_at="2026-11-21T12:00:00Z",
            facts=here.facts,
        )
        save(idle, self.root / "idle")

    def config(self, *more: str) -> str:
        lines = ("[power]", f'sysfs = "{self.sysfs}"', f'calibration = "{self.root / "idle"}"', *more)
        return "[server]\n" + "\n".join(lines) + "\n"


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "board")


@pytest.fixture(scope="module")
def picture() -> bytes:
    """A large one: decoding it lasts for many samples."""
    return encoded(drawn(height=3000, width=4000))


def until(what: Callable[[], Any]) -> Any:
    """Ask until there is an answer that is true, and return it."""
    give_up_s = time.monotonic() + LIMIT_S
    while not (found := what()):
        assert time.monotonic() < give_up_s, "it never came"
        time.sleep(0.05)
    return found


def power_of(peer: Peer) -> dict[str, Any]:
    found: dict[str, Any] = peer.status()["power"]
    return found


def reads(peer: Peer, watts: float) -> None:
    until(lambda: power_of(peer)["watts"] == watts)


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
    peer = connect(start(board.config()))
    reason = until(lambda: "jetsel power calibrate" in (said := power_of(peer)["idle_reason"] or "") and said)
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
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_uncertainty_mj"]) == (40.0, 2.0)
    assert (answer["energy_estimated"], answer["energy_reason"]) == (True, None)
    shutil.rmtree(folder / "calibration")
    peer.ask({"type": "reload"})
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_reason"]) == (None, f"no meter: {found}")
    printed = " ".join(jetsel("status", "--endpoint", daemon.endpoint).stdout.split())  # a long line is folded
    assert f"power: not measured: {found}" in printed


def test_another_power_mode_under_the_daemon_is_told_everywhere_and_warned_of_once(
    board: Board, start: Start, connect: Connect, jpeg: bytes
) -> None:
    board.calibrate()
    daemon = start(board.config())
    peer = connect(daemon)
    until(lambda: power_of(peer)["idle_w"] == IDLE_W)
    assert power_of(peer)["out_of_conditions"] == []
    board.mode(1)
    told = until(lambda: power_of(peer)["out_of_conditions"])
    changed = "power mode changed from '0 MAXN' to '1 MAXQ'"
    assert sorted(told) == [f"calibration of starter: {changed}", f"idle power: {changed}"]
    assert sorted(peer.classify(jpeg)["out_of_conditions"]) == sorted(told)
    assert power_of(peer)["power_mode"] == "1 MAXQ"
    board.mode(0)
    until(lambda: not power_of(peer)["out_of_conditions"])
    assert peer.classify(jpeg)["out_of_conditions"] == []
    warned = [line for line in daemon.log.read_text().splitlines() if "out of its conditions" in line]
    assert len([line for line in warned if "no longer" not in line]) == 2


def test_the_budget_leaves_expensive_models_out_while_the_mean_is_above_it_and_takes_them_back(
    board: Board, start: Start, connect: Connect, jpeg: bytes
) -> None:
    board.power(60.0)
    daemon = start(board.config("budget_w = 50.0", "[policy]", 'default = "single:xl"'))
    peer = connect(daemon)
    assert peer.classify(jpeg)["model"] == "xl"
    level = until(lambda: power_of(peer)["budget"]["level"])
    answer = peer.classify(jpeg, explain=True)
    assert answer["policy"] == "single:xl"
    assert answer["model"] in ("l", "m", "s", "xs")
    assert "stands in: xl is left out, to keep the power budget of 50 W" in answer["because"]
    assert any("xl is left out" in step for step in answer["explanation"]["steps"])
    assert answer["explanation"]["policy_because"] == "the configuration says so"
    assert peer.classify(jpeg, model="xl")["model"] == "xl", "what a request names is honoured"
    assert peer.classify(jpeg, policy="single:xl")["model"] == "xl"
    board.power(0.0)
    until(lambda: power_of(peer)["budget"]["level"] < max(level, 1))
    assert "power budget: 50 W; level" in jetsel("status", "--endpoint", daemon.endpoint).stdout
    file = daemon.config
    file.write_text(file.read_text().replace("budget_w = 50.0", "rate_hz = 500"))
    assert peer.ask({"type": "reload"})["changed"] == ["[power] budget_w"]
    assert power_of(peer)["budget"] is None
    assert peer.classify(jpeg)["model"] == "xl"
    assert "changes under [power] take effect at the next start" in daemon.log.read_text()
    assert "power budget: level 1" in daemon.log.read_text()


def test_the_sampler_ends_with_the_daemon(board: Board, start: Start, connect: Connect) -> None:
    daemon = start(board.config())
    peer = connect(daemon)
    until(lambda: power_of(peer)["watts"])
    (number,) = re.findall(r"power sampler (\d+) reads VDD_IN", daemon.log.read_text())
    sampler = Path("/proc", number)
    assert sampler.exists()
    assert daemon.stop() == 0
    until(lambda: not sampler.exists())
