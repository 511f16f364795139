"""A real daemon on the files of a TX2 whose mode, budget and sensors change, or fail, while it runs."""

from __future__ import annotations

import pytest

from tests.system.boards import Board, power_of
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.waiting import LIMIT_S, until


@pytest.mark.slow
def test_the_budget_leaves_expensive_models_out_while_the_mean_is_above_it_and_takes_them_back(
    board: Board, start: Start, connect: Connect, jpeg: bytes
) -> None:
    board.power(60.0)
    daemon = start(board.config("budget_w = 50.0", "[policy]", 'default = "single:xl"'))
    peer = connect(daemon)
    told = peer.classify(jpeg, explain=True)
    assert (told["model"], told["explanation"]["budget"]["budget_w"]) == ("xl", 50.0)
    level = until(lambda: power_of(peer)["budget"]["level"])
    answer = peer.classify(jpeg, explain=True)
    assert answer["explanation"]["objective"] == "time"
    assert answer["explanation"]["budget"]["level"] >= level
    assert answer["policy"] == "single:xl"
    assert answer["model"] in ("l", "m", "s", "xs")
    assert "power budget" in answer["because"]
    assert peer.classify(jpeg, model="xl")["model"] == "xl", "what a request names is honoured"
    assert peer.classify(jpeg, policy="single:xl")["model"] == "xl"
    board.power(0.0)
    until(lambda: power_of(peer)["budget"]["level"] < max(level, 1))
    assert "power budget: 50 W; level" in jetsel("status", "--endpoint", daemon.endpoint).stdout
    file = daemon.config
    file.write_text(file.read_text().replace("budget_w = 50.0", "rate_hz = 50"))
    assert peer.ask({"type": "reload"})["changed"] == ["[power] budget_w"]
    assert power_of(peer)["budget"] is None
    assert peer.classify(jpeg)["model"] == "xl"
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
