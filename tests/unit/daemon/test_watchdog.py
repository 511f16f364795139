"""When the watchdog is fed, and the daemon's own request that it waits for."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jetsel.base.errors import InternalError, ModelUnavailableError
from jetsel.daemon.job import Job
from jetsel.daemon.snapshot import CurrentSnapshot
from jetsel.daemon.watchdog import Probe, Watchdog
from jetsel.engines import Backends, OnDemandEngine
from tests.unit.daemon.families import config_of, loaded, put_family

PERIOD_S = 10.0


class Rig:
    """A watchdog with two workers that have come round once; the probe is answered unless `missing` says why not."""

    def __init__(self, period_s: float | None = PERIOD_S) -> None:
        self.now_s = 100.0
        self.fed: list[float] = []
        self.asked = 0
        self.missing: str | None = None
        self.takes_words = True
        self.at_host: frozenset[int] = frozenset()
        self.dog = Watchdog(period_s, self.feed, self.ask, lambda: self.at_host, lambda: self.now_s)
        self.workers = [ThreadPoolExecutor(1, f"worker-{number}") for number in range(2)]
        self.turn(0, 1)

    def feed(self) -> bool:
        if self.takes_words:
            self.fed.append(self.now_s)
        return self.takes_words

    def ask(self) -> str | None:
        self.asked += 1
        return self.missing

    def turn(self, *numbers: int) -> None:
        for number in numbers:
            self.workers[number].submit(self.dog.note_round).result()

    def later(self, seconds: float, *numbers: int) -> None:
        """Let time pass, in which these threads come round."""
        self.now_s += seconds
        self.turn(*numbers)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.dog.start()
    yield rig
    for worker in rig.workers:
        worker.shutdown()


def test_it_is_fed_at_half_the_period_while_every_worker_comes_round_and_the_probe_is_answered(rig: Rig) -> None:
    for _ in range(60):
        rig.later(0.5, 0, 1)
    assert rig.fed == [105.0, 110.0, 115.0, 120.0, 125.0, 130.0]
    assert rig.asked == len(rig.fed)


def test_nothing_is_fed_before_the_daemon_is_ready_nor_without_a_period_nor_where_nobody_turns(rig: Rig) -> None:
    for other in (Rig(), Rig(None)):
        other.later(1000, 0, 1)
        assert (other.fed, other.asked) == ([], 0)
    assert Rig(None).dog.longest_sleep_s is None
    rig.now_s += 1000
    assert rig.fed == [], "there is no thread of its own"


def test_a_worker_that_does_not_come_back_starves_it_once_told_and_is_forgiven_when_it_does(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.later(4, 1)
    rig.later(1, 0)
    for _ in range(16):
        rig.later(0.5, 0)
    assert rig.fed == [105.0], "worker 1 has completed no round since it was fed"
    assert caplog.text.count("worker-1_0 has worked on one task for 9.0 s") == 1
    rig.later(1, 1)
    assert rig.fed == [105.0, 114.0]
    assert "fed again" in caplog.text


def test_a_worker_that_waits_for_an_engine_host_is_its_supervisor_s_business(rig: Rig) -> None:
    (thread,) = rig.workers[1]._threads
    rig.at_host = frozenset({thread.ident or 0})
    for _ in range(4):
        rig.later(5, 0)
    assert rig.fed == [105.0, 110.0, 115.0, 120.0]
    rig.at_host = frozenset()
    rig.later(5, 0)
    assert len(rig.fed) == 4, "it is back from the host, and hangs elsewhere"


@pytest.mark.parametrize("missing", ["the probe waits", None], ids=["no answer", "no feeding taken"])
def test_without_an_answer_or_a_manager_that_listens_it_starves_and_is_looked_at_again_soon(
    rig: Rig, caplog: pytest.LogCaptureFixture, missing: str | None
) -> None:
    rig.missing, rig.takes_words = missing, missing is not None
    for _ in range(9):
        rig.later(1, 1, 0)
    assert rig.fed == []
    assert caplog.text.count(f"not fed: {missing or 'the service manager accepts no message'}") == 1
    rig.missing, rig.takes_words = None, True
    rig.later(1, 0, 1)
    assert rig.fed == [110.0]


@pytest.fixture
def begun() -> list[Job]:
    """What the probe has had made."""
    return []


@pytest.fixture
def probe(tmp_path: Path, begun: list[Job]) -> Probe:
    folder = put_family(tmp_path / "cats", "cats", "cat-s", "cat-l")
    (folder / "cat-s.onnx").write_bytes(b"damaged")
    backends = Backends()
    return Probe(CurrentSnapshot(loaded(config_of(folder), backends=backends)), backends, begun.append)


def test_it_asks_the_cheapest_model_that_runs_once_at_a_time(probe: Probe, begun: list[Job]) -> None:
    assert "just begun" in str(probe.ask())
    assert "has waited" in str(probe.ask())
    assert [job.policy.name for job in begun] == ["single:cat-l"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("ok", None), (ModelUnavailableError.code, None), (InternalError.code, "a defect ended the daemon's request")],
)
def test_what_an_outcome_shows(probe: Probe, begun: list[Job], outcome: str, words: str | None) -> None:
    probe.ask()
    probe.note_outcome(outcome)
    assert probe.ask() == words, "an unavailable model shows that the daemon works, a defect does not"
    assert probe.ask() is not None, "it is asked anew"
    assert len(begun) == 2


def test_it_asks_no_model_that_is_unloaded(probe: Probe, begun: list[Job]) -> None:
    snapshot = probe.current.snapshot
    (engine,) = snapshot.engines
    assert isinstance(engine, OnDemandEngine)
    assert engine.unload()
    probe.ask()
    assert [job.policy.name for job in begun] == ["single:cat-s"], "unavailable: that is soon answered"
    del snapshot.families["cats"].models["cat-s"]
    probe.note_outcome(ModelUnavailableError.code)
    assert probe.ask() is None
    assert probe.ask() is None, "none is left to ask"
    assert len(begun) == 1
    assert not engine.is_loaded
