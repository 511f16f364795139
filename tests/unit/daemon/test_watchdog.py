"""When the watchdog is fed, by a clock that the tests turn and threads that really stand where they say."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from jetsel.daemon.watchdog import Watchdog
from tests.unit.daemon.clock import Clock

PERIOD_S = 10.0
LIMIT_S = 60.0


class Probe:
    """Answered at once, unless it is told otherwise."""

    def __init__(self) -> None:
        self.asked = 0
        self.missing: str | None = None

    def ask(self) -> str | None:
        self.asked += 1
        return self.missing


class Worker:
    """A thread that calls what it is told to, and ends with the test."""

    def __init__(self, name: str) -> None:
        self._calls: list[Callable[[], None]] = []
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int:
        assert self._thread.ident is not None
        return self._thread.ident

    def do(self, call: Callable[[], None]) -> None:
        """Have it called there, and wait until it has returned."""
        with self._change:
            self._calls.append(call)
            self._change.notify_all()
            assert self._change.wait_for(lambda: not self._calls, LIMIT_S)

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: bool(self._calls))
                self._calls[0]()
                self._calls.pop()
                self._change.notify_all()


class Rig:
    """A watchdog with two workers that have come round once."""

    def __init__(self) -> None:
        self.clock, self.probe = Clock(), Probe()
        self.fed: list[float] = []
        self.takes_words = True
        self.at_host: frozenset[int] = frozenset()
        self.dog = Watchdog(PERIOD_S, self.feed, self.probe, lambda: self.at_host, self.clock)
        self.workers = [Worker("crew-0"), Worker("crew-1")]
        self.turn(0, 1)

    def feed(self) -> bool:
        if self.takes_words:
            self.fed.append(self.clock.now_s)
        return self.takes_words

    def turn(self, *numbers: int) -> None:
        for number in numbers:
            self.workers[number].do(self.dog.turned)

    def later(self, seconds: float, *numbers: int) -> None:
        """Let time pass, in which these threads come round."""
        self.clock.now_s += seconds
        self.turn(*numbers)


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.dog.start()
    return rig


def test_it_is_fed_at_half_the_period_while_every_thread_comes_round(rig: Rig) -> None:
    for _ in range(60):
        rig.later(0.5, 0, 1)
    assert rig.fed == [105.0, 110.0, 115.0, 120.0, 125.0, 130.0]


def test_nothing_is_fed_before_the_daemon_is_ready_nor_without_a_period() -> None:
    rig = Rig()
    rig.later(1000, 0, 1)
    assert rig.fed == []
    without = Watchdog(None, rig.feed, rig.probe, frozenset, rig.clock)
    without.start()
    rig.clock.now_s += 1000
    without.turned()
    assert (rig.fed, rig.probe.asked, without.longest_sleep_s) == ([], 0, None)


def test_a_thread_that_does_not_come_back_stops_it_although_the_other_goes_on(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.later(5, 1, 0)
    assert rig.fed == [105.0]
    for _ in range(100):
        rig.later(0.5, 0)
    assert rig.fed == [105.0], "thread 1 has not turned since it was fed"
    assert caplog.text.count("crew-1 has been at one piece of work for 7.5 s") == 1
    assert caplog.text.count("the watchdog is not fed") == 1, "told once"


def test_a_thread_that_comes_back_late_is_forgiven_at_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.later(5, 1, 0)
    for _ in range(16):
        rig.later(0.5, 0)
    assert rig.fed == [105.0]
    rig.later(0.1, 1)
    assert rig.fed == [105.0, 113.1]
    assert "the watchdog is fed again" in caplog.text
    for _ in range(4):
        rig.later(5, 0, 1)
    assert len(rig.fed) == 6


def test_a_thread_that_waits_for_an_engine_host_is_its_supervisor_s_business(rig: Rig) -> None:
    rig.later(5, 0, 1)
    rig.at_host = frozenset({rig.workers[1].ident})
    for _ in range(4):
        rig.later(5, 0)
    assert rig.fed == [105.0, 110.0, 115.0, 120.0, 125.0]
    rig.at_host = frozenset()
    rig.later(5, 0)
    assert len(rig.fed) == 5, "it is back from the host, and hangs elsewhere"


def test_a_probe_without_an_answer_stops_it_and_says_so(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.probe.missing = "the probe waits"
    for _ in range(8):
        rig.later(1, 0, 1)
    assert rig.fed == []
    assert "not fed: the probe waits" in caplog.text
    rig.probe.missing = None
    rig.later(1, 0, 1)
    assert rig.fed == [109.0]


def test_the_probe_is_asked_anew_for_every_feeding_and_not_after_its_answer(rig: Rig) -> None:
    rig.later(4.9, 0, 1)
    assert rig.probe.asked == 0, "nothing is due"
    for _ in range(3):
        rig.later(5, 0, 1)
    assert len(rig.fed) == rig.probe.asked == 3


def test_an_answer_holds_while_a_thread_is_late(rig: Rig) -> None:
    rig.later(5, 1, 0)
    for _ in range(10):
        rig.later(1, 0)
    assert rig.probe.asked == 2
    rig.turn(1)
    assert (len(rig.fed), rig.probe.asked) == (2, 2)


def test_a_thread_that_has_left_is_not_waited_for(rig: Rig) -> None:
    rig.later(5, 0, 1)
    rig.workers[1].do(rig.dog.left)
    for _ in range(3):
        rig.later(5, 0)
    assert len(rig.fed) == 4


def test_where_nobody_turns_nobody_feeds(rig: Rig) -> None:
    rig.clock.now_s += 1000
    threading.Event().wait(0.2)
    assert rig.fed == [], "there is no thread of its own"


def test_a_feeding_that_was_not_taken_is_tried_again_at_the_next_look(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.takes_words = False
    for _ in range(8):
        rig.later(1, 0, 1)
    assert rig.fed == []
    assert caplog.text.count("not fed: the service manager takes no word") == 1
    assert "fed again" not in caplog.text
    rig.takes_words = True
    rig.later(0.1, 0)
    assert rig.fed == [108.1]
    assert "the watchdog is fed again" in caplog.text
    assert rig.probe.asked == 1, "its answer held"
