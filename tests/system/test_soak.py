"""The soak and the reloads under load in short: as commands they run for as long as one likes (docs/reliability.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.reloads import reload_under_load
from tests.faults.soak import soak
from tests.faults.upsets import UPSETS
from tests.system.daemons import Connect, Start

pytestmark = pytest.mark.slow


def test_whatever_is_asked_is_answered_and_counted_once_and_rightly(start: Start, connect: Connect) -> None:
    daemon = start()
    found = soak(daemon, requests=2000, clients=16)
    assert found.wrong == []
    assert found.asked == found.answered >= 2000
    ended: Counter[str] = Counter()
    for of, count in found.outcomes.items():
        kind, _, outcome = of.rpartition(": ")
        ended[outcome] += count if kind != "status" else 0
    told = connect(daemon).status()
    assert told["requests"] == ended
    assert sum(told["answers"]["stages"]["total"]["counts"]) == ended["ok"] == told["families"][0]["answers"]
    assert (told["queue"]["waiting"], told["queue"]["working"], told["queue"]["bytes"]) == (0, 0, 0)


def test_no_valid_request_fails_whatever_lies_on_the_disk_at_a_reload(tmp_path: Path) -> None:
    found = reload_under_load(tmp_path, len(UPSETS))
    assert found.wrong == []
    assert set(found.requests) == {"ok"}
