"""What is counted, by outcome."""

from __future__ import annotations

import threading

from jetsel.daemon.tally import Tally


def test_outcomes_are_counted_by_name() -> None:
    found = Tally()
    for outcome in ("busy", "ok", "busy"):
        found.count(outcome)
    assert found.outcomes() == {"busy": 2, "ok": 1}
    found.outcomes().clear()
    assert found.outcomes() == {"busy": 2, "ok": 1}, "what it gave away is a copy"


def test_threads_that_count_at_once_lose_nothing() -> None:
    found = Tally()

    def work() -> None:
        for _ in range(500):
            found.count("ok")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.outcomes() == {"ok": 3000}
