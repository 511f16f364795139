"""A real daemon and `jetsel power` on the files of a TX2: energies, what the sensor measured, idle power, budget."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from jetsel.artefact.calibration import Calibration, MeasuredEnergy, PolicyPart
from jetsel.artefact.coding import read
from jetsel.artefact.installed import install
from jetsel.power.machine import comparable_facts
from jetsel.zoo import STARTER
from tests.data.sysfs_trees import tree
from tests.system.boards import IDLE_W, Board, power_of, reads
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.unit.daemon.families import calibrate, put_family
from tests.waiting import LIMIT_S, until

ENERGY = MeasuredEnergy(mean_mj={"cat-s": 1000.0, "cat-l": 4000.0}, half_width_mj={"cat-s": 1.0, "cat-l": 2.0})


def models(folder: Path) -> tuple[str, str, str]:
    return "[models]", "starter = false", f'paths = ["{folder}"]'


@pytest.mark.slow
def test_answers_have_calibrated_energies_and_the_sensor_says_what_they_add_up_to(
    board: Board, start: Start, connect: Connect, tmp_path: Path, jpeg: bytes
) -> None:
    board.calibrate()
    board.power(8.0)
    folder = put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")
    calibrate(folder, "cats", machine=comparable_facts(board.facts()), energy=ENERGY)
    daemon = start(board.config(*models(folder)))
    peer = connect(daemon)
    until(lambda: power_of(peer)["idle_w"] == IDLE_W)
    reads(peer, 8.0)
    until(lambda: power_of(peer)["rails_w"].get("VDD_IN") == 8.0)
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_estimated"], answer["energy_reason"]) == (4000.0, True, None)
    peer.classify(jpeg, model="cat-s")
    power = power_of(peer)
    assert {policy["policy"]: policy["joules"] for policy in power["policies"]} == {
        "single:cat-l": 4,
        "single:cat-s": 1,
    }
    assert {model["model"]: model["photographs"] for model in power["models"]} == {"cat-l": 1, "cat-s": 1}
    assert (power["reason"], power["total_of"], power["power_mode"]) == (None, ["VDD_IN"], "0 MAXN")
    for watts in (8.0, 9.0) * 6:  # the sensor has new values, a few of them at least
        board.power(watts)
        reads(peer, watts)
    judged = until(lambda: (found := power_of(peer)["judged"])["ratio"] is not None and found)
    assert (judged["estimated_j"], judged["answers"], judged["unestimated"]) == (5.0, 2, 0)
    assert 5.0 * judged["measured_s"] <= judged["measured_j"] <= 6.0 * judged["measured_s"]
    assert judged["ratio"] == pytest.approx(judged["measured_j"] / 5.0)
    printed = jetsel("status", "--endpoint", daemon.endpoint).stdout
    assert "ratio of measured to estimated" in printed
    board.mode(1)
    until(lambda: power_of(peer)["out_of_conditions"])
    answer = peer.classify(jpeg, model="cat-l")
    assert (answer["energy_mj"], answer["energy_estimated"]) == (None, False)
    assert "power mode changed" in answer["energy_reason"]
    assert answer["out_of_conditions"] == ["calibration of cats: power mode changed from '0 MAXN' to '1 MAXQ'"]
    assert power_of(peer)["judged"]["unestimated"] == 1


TX2 = tree("jetson-tx2")


def test_what_every_rail_reads_now_is_shown_with_the_total() -> None:
    shown = jetsel("power", "--sysfs", TX2).stdout
    assert re.search(r"VDD_IN +3\.051", shown)
    assert re.search(r"total +3\.051", shown)
    assert "the total is VDD_IN" in shown


@pytest.mark.slow
def test_idle_power_is_measured_and_kept(tmp_path: Path) -> None:
    state = {"STATE_DIRECTORY": str(tmp_path)}
    done = jetsel("power", "calibrate", "--seconds", "15", "--with-load", "--json", "--sysfs", TX2, env=state)
    assert done.returncode == 0, done.stderr
    idle = json.loads(done.stdout)
    assert idle["mean_w"] == pytest.approx(3.051)
    assert idle["rails"] == ["VDD_IN"]
    assert idle["board"] == "jetson-tx2"
    # A TX2's VDD_IN is told in steps of 8 mA at 19 V, and a constant power is off by up to half of one.
    assert idle["half_width_w"] == pytest.approx(1.96 * 0.153856 / 12**0.5, rel=0.01)
    assert len(list(tmp_path.rglob("idle-=jetson-tx2-*.json"))) == 1


DEAR_MJ, CHEAP_MJ = 40.0, 1.0


def with_energies() -> Calibration:
    """The starter's calibration, as if power had been measured; its default is the most accurate point of the chain."""
    made = read(STARTER / "calibration")
    default, part = made.default_policy, made.parts[made.default_policy]
    facts = msgspec.structs.replace(part.facts, price=part.facts.prices[0])
    parts = {**made.parts, default: PolicyPart(facts, part.arrays)}
    figures = {name: {**figure, "mean_mj": CHEAP_MJ} for name, figure in made.figures.items()}
    figures[default] = {**made.figures[f"{default}:1"], "mean_mj": DEAR_MJ}
    energies_mj = {model: DEAR_MJ if model in ("l", "xl") else CHEAP_MJ for model in made.costs_ms}
    return msgspec.structs.replace(made, parts=parts, figures=figures, energy=MeasuredEnergy(mean_mj=energies_mj))


@pytest.mark.slow
def test_cheaper_points_answer_while_the_mean_power_is_above_the_budget_and_the_default_after_it(
    board: Board, start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    install(with_energies(), tmp_path / "calibrations", "starter")
    board.power(60.0)
    daemon = start(board.config("budget_w = 50.0", "[models]", f'calibrations = "{tmp_path / "calibrations"}"'))
    peer = connect(daemon)
    told = peer.classify(jpeg, explain=True)
    assert (told["operating_point"], told["explanation"]["budget"]["budget_w"]) == ("chain", 50.0)
    until(lambda: peer.classify(jpeg)["operating_point"] != "chain")
    assert peer.classify(jpeg, model="xl")["model"] == "xl", "what a request names is honoured"
    assert peer.classify(jpeg, policy="cascade")["policy"] == "cascade"
    assert "power budget: 50 W; it leaves" in jetsel("status", "--endpoint", daemon.endpoint).stdout
    board.power(0.0)
    until(lambda: peer.classify(jpeg)["operating_point"] == "chain")
    file = daemon.config
    file.write_text(file.read_text().replace("budget_w = 50.0", "rate_hz = 50"))
    assert "[power] budget_w" in peer.ask({"type": "reload"})["changed"]
    assert power_of(peer)["budget"] is None
    assert peer.classify(jpeg)["operating_point"] is None
    assert "changes under [power] take effect at the next start" in daemon.log.read_text()


def test_what_is_wrong_under_power_ends_the_start(start: Start) -> None:
    daemon = start('[power]\nboard = "jetson-tx9"\n', ready=False)
    assert daemon.process.wait(LIMIT_S) == 2
    assert "power.board" in daemon.log.read_text()
