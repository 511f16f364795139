"""How one snapshot follows another, on real models, and that whoever asks for a reload is answered once."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jetsel import wire
from jetsel.base.config import Config, Power
from jetsel.base.errors import JetselError, ReloadFailedError, ShuttingDownError
from jetsel.base.notify import Notifier
from jetsel.daemon import reload as module
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Route
from jetsel.daemon.reload import Reloader, ReloadRequests
from jetsel.daemon.snapshot import CurrentSnapshot, Snapshot, read_snapshot
from jetsel.daemon.tally import Tally
from jetsel.engines import Backends, Engine, OnDemandEngine
from jetsel.wire import PROTOCOL_VERSION, Reply
from tests.unit.daemon.families import config_of, loaded, put_family
from tests.unit.daemon.test_snapshot import BATCH
from tests.waiting import LIMIT_S, until


class Rig:
    """What serves in a daemon, without its socket; `config` is what a reload reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = put_family(folder, "cats", "cat-s", "cat-l")
        self.config = self.of()
        self.metering = Metering(Power(sensor="none"))
        self.stopping = threading.Event()
        backends = Backends()
        self.current = CurrentSnapshot(loaded(self.config, backends=backends))
        self.reload = Reloader(
            self.config, self.current, backends, self.metering, lambda: self.config, self.stopping, lambda *_: None
        )

    def of(self, **models: object) -> Config:
        return config_of(self.folder, models=models)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "cats")
    yield made
    made.metering.stop()


def is_freed(found: Engine) -> bool:
    try:
        found.infer(BATCH)
    except JetselError as error:
        return "closed" in str(error)
    return False


def test_a_request_keeps_the_snapshot_that_it_began_with_and_its_engines_go_after_it(rig: Rig) -> None:
    current = rig.current
    first, again = current.enter(), current.enter()
    old = first.engines
    rig.config = rig.of(threads=2)
    assert rig.reload() == ["[models]"]
    assert current.snapshot is not first
    current.leave(first)
    assert first in current.open_snapshots, "the other request runs on"
    assert not any(map(is_freed, old))
    current.leave(again)
    assert current.open_snapshots == (current.snapshot,)
    assert all(map(is_freed, old))
    assert not any(map(is_freed, current.snapshot.engines))


def test_an_engine_that_an_older_request_shares_is_not_freed_under_it(rig: Rig) -> None:
    hung = rig.current.enter()
    _, shared = hung.engines
    rig.reload()  # takes it over
    rig.config = rig.of(only=["cat-s"])
    rig.reload()
    assert not is_freed(shared)
    rig.current.leave(hung)
    assert is_freed(shared)


def test_a_reload_that_is_refused_or_stopped_changes_nothing_and_leaves_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[Snapshot] = []

    def reading(*arguments: object) -> Snapshot:
        made.append(read_snapshot(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(module, "read_snapshot", reading)
    before = rig.current.snapshot
    rig.config = rig.of(threads=2)
    (rig.folder / "cat-l.onnx").write_bytes(b"damaged")
    refused = "the running configuration remains in use: model cat-l of family cats is in use, but cannot be loaded"
    with pytest.raises(ReloadFailedError, match=refused):
        rig.reload()
    assert "is unavailable" not in caplog.text, "the log has only what is to serve"
    rig.stopping.set()
    with pytest.raises(ShuttingDownError):
        rig.reload()
    assert rig.current.open_snapshots == (before,)
    assert not any(map(is_freed, before.engines))
    assert len(made) == 2
    assert all(is_freed(engine) for snapshot in made for engine in snapshot.engines)


def test_damaged_weights_of_a_model_that_runs_on_are_told_by_each_reload(rig: Rig) -> None:
    weights = rig.folder / "cat-l.onnx"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    for _ in range(2):
        (told,) = rig.reload()
        assert told.startswith(
            f"weights of cat-l are damaged; the model is served until it is unloaded: {weights}: sha256 is "
        )
        assert not any(map(is_freed, rig.current.snapshot.engines))
    weights.write_bytes(whole)
    assert rig.reload() == []


def test_what_is_unloaded_stays_so_and_is_loaded_anew_where_that_had_failed(rig: Rig) -> None:
    before = rig.current.snapshot.families["cats"].driver.queues
    for queue in before.values():
        assert isinstance(queue.engine, OnDemandEngine)
        assert queue.engine.unload()
    weights = rig.folder / "cat-l.onnx"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    before["cat-l"].request_load()
    until(lambda: before["cat-l"].state == "unavailable")
    assert "sha256" in str(before["cat-l"].reason)
    assert any(line.startswith("model cat-l of cats is unavailable: ") for line in rig.reload()), "and it is no refusal"
    weights.write_bytes(whole)
    rig.reload()
    after = rig.current.snapshot.families["cats"].driver.queues
    assert [queue.state for queue in after.values()] == ["unloaded", "ready"]
    assert after["cat-s"].engine is before["cat-s"].engine


def test_a_new_model_that_does_not_load_is_told_once_and_never_the_default(rig: Rig) -> None:
    rig.config = rig.of(only=["cat-s"])
    rig.reload()
    (rig.folder / "cat-l.onnx").write_bytes(b"damaged")
    rig.config = rig.of()
    changed = rig.reload()
    assert any(line.startswith("model cat-l of cats is unavailable: ") and "sha256" in line for line in changed)
    assert any(line.startswith("single:cat-s is the default") for line in changed)
    family = rig.current.snapshot.families["cats"]
    assert (family.defaults.policy, family.defaults.fallback) == ("single:cat-s", "cat-s")
    assert rig.reload() == []


def test_a_model_whose_weights_are_gone_is_told_as_left_out(rig: Rig) -> None:
    (rig.folder / "cat-l.onnx").unlink()
    changed = rig.reload()
    assert "model cat-l removed" in changed
    assert any(line.startswith("left out: ") and "there is no file cat-l.onnx" in line for line in changed)


ROUTE = Route(1)


def message(request_id: str) -> tuple[Route, wire.Reload]:
    return ROUTE, wire.Reload(PROTOCOL_VERSION, request_id)


class Asking:
    """A requests whose reload does what the test says, and the replies that it gave."""

    def __init__(self, reload: Callable[[], list[str]]) -> None:
        self.replies: list[Any] = []
        self.requests = ReloadRequests(reload, self._reply, Notifier(), Tally())

    def _reply(self, route: Route, reply: Reply) -> None:
        assert route is ROUTE
        self.replies.append(reply)

    def wait_for(self, count: int) -> None:
        until(lambda: len(self.replies) >= count)


class Gate:
    """A reload that takes until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> list[str]:
        self.count += 1
        self.begun.release()
        assert self.go.acquire(timeout=LIMIT_S)
        return [f"reload {self.count}"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReloadFailedError("no such model"), "reload-failed"),
        (OSError(5, "Input/output error"), "internal"),
    ],
)
def test_whatever_a_reload_ends_with_who_asked_is_answered(error: Exception, code: str) -> None:
    def fail() -> list[str]:
        raise error

    rig = Asking(fail)
    for number in range(3):
        rig.requests.request(message(str(number)))
        rig.wait_for(number + 1)
    assert [reply.code for reply in rig.replies] == [code] * 3


def test_who_asks_meanwhile_shares_the_next_and_not_the_one_that_has_read_already() -> None:
    gate = Gate()
    rig = Asking(gate)
    rig.requests.request(message("first"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    for number in range(10):
        rig.requests.request(message(str(number)))
        rig.requests.request()
    gate.go.release(2)
    rig.wait_for(11)
    assert [(reply.id, reply.changed) for reply in rig.replies] == [
        ("first", ["reload 1"]),
        *((str(number), ["reload 2"]) for number in range(10)),
    ]


def test_at_the_end_who_waits_or_asks_is_told_so_once() -> None:
    gate = Gate()
    rig = Asking(gate)
    rig.requests.request(message("under way"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    rig.requests.request(message("waits"))
    rig.requests.close()
    rig.requests.give_up(0.05)
    rig.requests.request(message("late"))
    gate.go.release(5)
    rig.requests.give_up(LIMIT_S)
    told = [(reply.id, reply.code, reply.retry) for reply in rig.replies]
    assert told == [(name, "shutting-down", True) for name in ("under way", "waits", "late")]
    assert gate.count == 1
