"""Waves go out one after the other, wait for those before, and stop where these fare worse."""

from pathlib import Path

import pytest

from jetsel.addons.fleet.documents import MAX_SERIAL, ROLLOUT, Entry, Plan, PlannedFamily
from jetsel.addons.fleet.manager.devices import Device, read_devices
from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.manager.planning import Proposal, read_plans
from jetsel.addons.fleet.manager.rolling import RolloutManager, RollOutTolerance, waves_of
from jetsel.addons.fleet.publishing import write_plan
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import Trial
from jetsel.base.errors import ConfigError, RepositoryError
from tests.unit.addons.fleet.published import Pair, pair, told, upload

OLD, NEW = (
    (PlannedFamily(bundle=Entry(family="pets", version=version, sha256=f"{version}" * 64), models=("small",)),)
    for version in (1, 2)
)
DEVICES = ("a", "b", "c", "d")


class Fleet:
    """Four devices with plan 5, and a roll-out to two of them, then to all."""

    def __init__(self, folder: Path) -> None:
        self.key: Pair = pair(folder, "key")
        self.folder = folder
        self.storage = Storage(str(folder / "repository"))
        for name in DEVICES:
            write_plan(self.storage, Plan(device=name, serial=5, families=OLD), [self.key.private])
            upload(self.storage, told(name, 1, 100, plan=5, p95_ms=10.0))
        self.rolling = self.manager("key.rollouts")
        proposals = [Proposal(device=name, serial=5, families=NEW, changes=name != "d") for name in DEVICES]
        self.rollout = self.rolling.begin(proposals, self.devices(), "2,100%")
        self.first, self.second, self.third = (one.plan.device for one in self.rollout.devices)

    def manager(self, serials: str) -> RolloutManager:
        return RolloutManager(self.storage, [self.key.private], (), self.folder / serials)

    def devices(self) -> dict[str, Device]:
        table = Metadata(self.storage)
        table.gather()
        return read_devices(table)

    def serials(self) -> dict[str, int]:
        return {name: plan.serial for name, plan in read_plans(self.storage, [self.key.public]).items()}

    def tell(self, *names: str, outcome: str = "installed", **changes: object) -> None:
        trial = Trial(serial=6, outcome=outcome, reason=None if outcome == "installed" else "no space")
        for name in names:
            upload(self.storage, told(name, 2, 100, **{"plan": 6, "trial": trial, "p95_ms": 11.0, **changes}))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_a_wave_goes_out_when_those_before_have_installed_theirs(fleet: Fleet) -> None:
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert set(step.released) == {fleet.first, fleet.second}
    assert fleet.serials() == {**dict.fromkeys(DEVICES, 5), fleet.first: 6, fleet.second: 6}
    fleet.tell(fleet.first)
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert (step.released, step.waiting, step.is_done) == ((), (f"{fleet.second} has not reported yet",), False)
    fleet.tell(fleet.second)
    assert fleet.rolling.advance(fleet.devices(), RollOutTolerance()).released == (fleet.third,)
    fleet.tell(fleet.third)
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert (step.released, step.is_done) == ((), True)
    assert fleet.serials() == {**dict.fromkeys(DEVICES, 6), "d": 5}


@pytest.mark.parametrize(
    ("told_so", "allowed", "words"),
    [
        ({"outcome": "rolled-back"}, RollOutTolerance(failed=0.5), "rolled-back: no space"),
        ({"requests": {"ok": 95, "busy": 5}}, RollOutTolerance(errors=0.03), "5.0 points"),
        ({"p95_ms": 16.0}, RollOutTolerance(slower=2.0), "1.60 times"),
    ],
)
def test_nothing_goes_out_while_something_is_against_it(
    fleet: Fleet, told_so: dict[str, object], allowed: RollOutTolerance, words: str
) -> None:
    fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    fleet.tell(fleet.first, **told_so)
    fleet.tell(fleet.second, **({} if "outcome" in told_so else told_so))
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert any(words in one for one in step.against)
    assert (step.released, step.is_done) == ((), False)
    step = fleet.rolling.advance(fleet.devices(), allowed)
    assert (bool(step.against), bool(step.released)) == ((True, False) if "requests" in told_so else (False, True))


LIES = {"requests": {"ok": 2**53}, "p95_ms": 1e-9}


@pytest.mark.parametrize(
    ("truth", "words"), [({"requests": {"ok": 10, "busy": 90}}, "90.0 points"), ({"p95_ms": 30.0}, "3.00 times")]
)
def test_one_device_alone_hides_nothing(fleet: Fleet, truth: dict[str, object], words: str) -> None:
    fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    fleet.tell(fleet.first, **truth)
    fleet.tell(fleet.second, **LIES)
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert any(words in one for one in step.against)
    assert step.released == ()


def test_a_call_that_was_killed_between_two_plans_is_made_good(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = fleet.storage.write, []

    def dying(name: str, content: bytes) -> None:
        if name.startswith("plans/") and written:
            raise KeyboardInterrupt
        written.extend([name] if name.startswith("plans/") else [])
        write(name, content)

    monkeypatch.setattr(fleet.storage, "write", dying)
    with pytest.raises(KeyboardInterrupt):
        fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    monkeypatch.undo()
    another = fleet.manager("key.rollouts")
    assert len(another.advance(fleet.devices(), RollOutTolerance()).released) == 1
    assert sorted(fleet.serials().values()) == [5, 5, 6, 6]


def test_what_is_stopped_goes_no_further_and_comes_back(fleet: Fleet) -> None:
    fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert set(fleet.rolling.stop("worse", revert=True)) == {fleet.first, fleet.second}
    plans = read_plans(fleet.storage, [fleet.key.public])
    assert (plans[fleet.first].serial, plans[fleet.first].families) == (7, OLD)
    assert plans[fleet.third].serial == 5
    with pytest.raises(RepositoryError, match="stopped: worse"):
        fleet.rolling.advance(fleet.devices(), RollOutTolerance())


def test_an_earlier_state_that_is_put_back_is_rejected(fleet: Fleet) -> None:
    fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    with fleet.storage.open(ROLLOUT)[0] as stream:
        going = stream.read()
    another = fleet.manager("another.rollouts")
    fleet.rolling.stop("worse", revert=False)
    with pytest.raises(RepositoryError, match="stopped: worse"):
        another.advance(fleet.devices(), RollOutTolerance())
    fleet.storage.write(ROLLOUT, going)
    fleet.tell(fleet.first, fleet.second)
    for serials in ("key.rollouts", "another.rollouts"):  # who stopped it, and who has seen that
        with pytest.raises(RepositoryError, match="an earlier state"):
            fleet.manager(serials).advance(fleet.devices(), RollOutTolerance())
    assert fleet.serials()[fleet.third] == 5
    fleet.storage.remove(ROLLOUT)
    begun = fleet.rolling.begin([Proposal(device="d", serial=5, families=NEW, changes=True)], {}, "100%")
    assert begun.serial > 3, "no serial comes twice"


def test_a_serial_that_leaves_room_for_no_next_does_not_count(fleet: Fleet) -> None:
    fleet.rolling.stop("worse", revert=False)
    stolen = {"plan": MAX_SERIAL, "trial": Trial(serial=MAX_SERIAL, outcome="installed")}
    upload(fleet.storage, told("d", 2, 100, **stolen))
    fleet.rolling.begin([Proposal(device="d", serial=5, families=NEW, changes=True)], fleet.devices(), "100%")
    assert fleet.rolling.advance(fleet.devices(), RollOutTolerance()).released == ("d",)
    assert fleet.serials()["d"] == 6
    step = fleet.rolling.advance(fleet.devices(), RollOutTolerance())
    assert (step.waiting, step.is_done) == (("d has not reported yet",), False)


def test_a_plan_by_a_key_that_is_not_trusted_is_named_with_the_repair(fleet: Fleet) -> None:
    stolen = pair(fleet.folder, "stolen")
    write_plan(fleet.storage, Plan(device="a", serial=MAX_SERIAL, families=OLD), [stolen.private])
    with pytest.raises(RepositoryError, match=r"plans/a\.json.*remove it to plan the device anew"):
        fleet.rolling.advance(fleet.devices(), RollOutTolerance())


def test_what_cannot_begin_says_why(fleet: Fleet) -> None:
    proposal = Proposal(device="a", serial=5, families=NEW, changes=True)
    with pytest.raises(RepositoryError, match="under way"):
        fleet.rolling.begin([proposal], {}, "100%")
    fleet.rolling.stop("anew", revert=False)
    with pytest.raises(RepositoryError, match="change no device"):
        fleet.rolling.begin([], {}, "100%")
    write_plan(fleet.storage, Plan(device="a", serial=8, families=OLD), [fleet.key.private])
    with pytest.raises(RepositoryError, match="plan again"):
        fleet.rolling.begin([proposal], {}, "100%")


def test_waves_are_counts_and_shares_that_rise_to_all() -> None:
    assert waves_of("1,10,100%", 300) == (1, 10, 300)
    assert waves_of("1,1%,50%,100%", 40) == (1, 20, 40)
    assert waves_of("5,100%", 3) == (3,)
    for wrong in ("1,10", "10%,1%,100%", "some", "0,100%", ""):
        with pytest.raises(ConfigError, match="rise to 100"):
            waves_of(wrong, 100)
