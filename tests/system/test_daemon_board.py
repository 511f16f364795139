"""A real daemon on the files of a TX2 whose mode, budget and sensors change, or fail, while it runs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.coding import read
from jetsel.artefact.installed import install
from jetsel.zoo import STARTER
from tests.system.boards import Board, power_of
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.waiting import LIMIT_S, until

DEAR_MJ, CHEAP_MJ = 40.0, 1.0


def with_energies() -> Calibration:
    """The starter's calibration, as if it had been made where power is measured."""
    made = read(STARTER / "calibration")
    figures = {
        name: {**figure, "mean_mj": DEAR_MJ if name == made.default_policy else CHEAP_MJ}
        for name, figure in made.figures.items()
    }
    energies_mj = {model: DEAR_MJ if model in ("l", "xl") else CHEAP_MJ for model in made.costs_ms}
    return msgspec.structs.replace(made, figures=figures, energies_mj=energies_mj)


@pytest.mark.slow
def test_cheaper_points_answer_while_the_mean_power_is_above_the_budget_and_the_default_after_it(
    board: Board, start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    install(with_energies(), tmp_path / "calibrations", "starter")
    board.power(60.0)
    daemon = start(board.config("budget_w = 50.0", "[models]", f'calibrations = "{tmp_path / "calibrations"}"'))
    peer = connect(daemon)
    told = peer.classify(jpeg, explain=True)
    assert (told["operating_point"], told["explanation"]["budget"]["budget_w"]) == ("cascade", 50.0)
    until(lambda: peer.classify(jpeg)["operating_point"] != "cascade")
    assert peer.classify(jpeg, model="xl")["model"] == "xl", "what a request names is honoured"
    assert peer.classify(jpeg, policy="cascade")["policy"] == "cascade"
    assert "power budget: 50 W; it leaves" in jetsel("status", "--endpoint", daemon.endpoint).stdout
    board.power(0.0)
    until(lambda: peer.classify(jpeg)["operating_point"] == "cascade")
    file = daemon.config
    file.write_text(file.read_text().replace("budget_w = 50.0", "rate_hz = 50"))
    assert "[power] budget_w" in peer.ask({"type": "reload"})["changed"]
    assert power_of(peer)["budget"] is None
    assert peer.classify(jpeg)["operating_point"] is None
    assert "changes under [power] take effect at the next start" in daemon.log.read_text()


def test_what_is_wrong_under_power_ends_the_start_and_is_refused_by_a_reload(
    board: Board, start: Start, connect: Connect
) -> None:
    line, reason = 'board = "jetson-tx9"', "power.board"
    daemon = start(board.config(line), ready=False)
    assert daemon.process.wait(LIMIT_S) == 2
    assert reason in daemon.log.read_text()
    daemon = start(board.config())
    daemon.config.write_text(daemon.config.read_text() + line + "\n")
    reply = connect(daemon).ask({"type": "reload"})
    assert (reply["type"], reply["code"]) == ("failure", "reload-failed")
    assert reason in reply["message"]
