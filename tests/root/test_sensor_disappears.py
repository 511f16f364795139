"""A daemon whose power sensor is unbound while it serves: energies go, with the reason, and come back."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.simulator import following
from tests.simulator.starting import Simulate
from tests.system.boards import Board, power_of
from tests.system.daemons import Peer, drawn, encoded, launch, wait_until_ready
from tests.waiting import until


def test_a_sensor_that_disappears_takes_the_energies_and_nothing_else_and_brings_them_back(
    simulate: Simulate, tmp_path: Path
) -> None:
    board = Board(tmp_path / "board")
    tree = board.sysfs
    simulator = simulate(lambda at: Path(shutil.copytree(tree, at, symlinks=True)), power=following(3.0, 5.0))
    board.sysfs = simulator.root
    board.calibrate(3.0)
    photograph = encoded(drawn(height=3000, width=4000))  # decoding it lasts for many samples
    daemon = launch(tmp_path, board.config())
    try:
        wait_until_ready(daemon)
        simulator.follow(daemon.process.pid)
        peer = Peer(daemon.endpoint)
        until(lambda: measured(peer, photograph))
        simulator.fail("VDD_IN", "unbound")
        until(lambda: not measured(peer, photograph))
        assert until(lambda: power_of(peer)["reason"])
        assert "energy_reason" in peer.classify(photograph)
        simulator.heal()
        until(lambda: measured(peer, photograph))
        assert power_of(peer)["reason"] is None
        peer.close()
        assert daemon.stop() == 0
    finally:
        daemon.process.kill()


def measured(peer: Peer, photograph: bytes) -> bool:
    """Whether a request is answered, as it must be, and its energy was read."""
    answer = peer.classify(photograph)
    assert answer["type"] == "answer"
    return answer["energy_mj"] is not None and not answer["energy_estimated"]
