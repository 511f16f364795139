"""Going back, killed or without an answer: no plan stays in use that nothing has judged well."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from jetsel import Client
from jetsel.addons.fleet.agent import remembered
from jetsel.addons.fleet.agent.canary import Canary
from jetsel.addons.fleet.agent.following import Follower
from jetsel.addons.fleet.agent.installing import Installer
from jetsel.addons.fleet.config import Fleet
from jetsel.addons.fleet.documents import PlannedFamily
from jetsel.addons.fleet.sources import FolderRepository
from jetsel.addons.fleet.usage import CanaryResult
from jetsel.site import config_file
from tests.system.daemons import Daemon, Start
from tests.system.endless import WHITE, put_endless_family
from tests.system.fleet.site import Site, begin_agent, fleet_config, outcome, put_pets, run_agent, state
from tests.unit.addons.fleet.published import pair
from tests.waiting import until

pytestmark = pytest.mark.slow


class KilledError(BaseException):
    """The agent ends here, as by SIGKILL: what it wrote stays."""


@pytest.fixture
def follower(device: Daemon, site: Site, canary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follower:
    """What follows the plans of that device, in this process."""
    monkeypatch.setenv("STATE_DIRECTORY", state(tmp_path)["STATE_DIRECTORY"])
    folder = installed(tmp_path).parent
    return Follower(
        "one",
        FolderRepository(site.url),
        [site.key.public],
        Installer(folder, config_file.read(device.config), Fleet(), device.config),
        Canary(canary, None),
        lambda: Client(device.endpoint),
        folder / "remembered.json",
    )


def installed(folder: Path) -> Path:
    return folder / "state-agent/installed"


def put_bad(site: Site, folder: Path) -> None:
    site.publish(put_pets(folder / "bad", "small", "large", turned=("small", "large")))
    site.plan("one", 2, "small", "large")


def dies_at_call(number: int, opens: Callable[[], Client]) -> Callable[[], Client]:
    calls = iter(range(1, 100))

    def client() -> Client:
        if next(calls) == number:
            raise KilledError
        return opens()

    return client


def test_a_plan_without_a_verdict_in_three_rounds_is_taken_back_even_if_the_daemon_cannot_start(
    start: Start, device: Daemon, site: Site, tmp_path: Path
) -> None:
    device.stop()
    site.plan("one", 2, "small", "large")
    assert [outcome(device, tmp_path) for _ in range(2)] == [(2, "waiting")] * 2
    said = run_agent(device, tmp_path)
    assert (said["plan"], said["trial"]["outcome"]) == (1, "waiting")
    assert "without a verdict" in said["trial"]["reason"]
    again = start(fleet_config(site, "one", tmp_path / "canary"), env=state(tmp_path))
    assert [outcome(again, tmp_path) for _ in range(2)] == [(1, "rolled-back")] * 2


def test_rounds_that_are_killed_count(follower: Follower) -> None:
    first = remembered.read(follower.memory)
    on_trial = remembered.OnTrial(serial=1, before=0, canary={}, rounds=3)
    known = follower.follow(structs.replace(first, on_trial=on_trial))
    assert (known.trial.outcome, follower.installer.versions.current()) == ("rolled-back", 0)


def test_an_agent_killed_on_the_way_back_goes_on_until_the_daemon_has_reloaded(
    follower: Follower, device: Daemon, site: Site, tmp_path: Path
) -> None:
    put_bad(site, tmp_path)
    killed = replace(follower, client=dies_at_call(3, follower.client))  # before, during the trial, on the way back
    with pytest.raises(KilledError):
        killed.follow(remembered.read(follower.memory))
    assert installed(tmp_path).joinpath("current").readlink() == Path("1")
    assert outcome(device, tmp_path) == (1, "rolled-back")
    with follower.client() as client:
        assert [model.name for model in client.status().families[0].models] == ["small"]
    assert not installed(tmp_path).joinpath("3").exists(), "it was not tried a second time"


def test_a_way_back_ends_when_the_daemon_answers_again(
    follower: Follower, start: Start, device: Daemon, site: Site, canary: Path, tmp_path: Path
) -> None:
    for path in canary.rglob("*.png"):
        path.write_bytes(WHITE)
    device.stop()
    one_worker = start(fleet_config(site, "one", canary, "[server]\nworkers = 1"), env=state(tmp_path))
    site.publish(put_endless_family(tmp_path / "endless", "pets"))
    site.plan("one", 2, "endless")
    hurried = replace(follower, client=lambda: Client(device.endpoint, timeout_ms=5000))
    known = hurried.follow(remembered.read(follower.memory))
    assert known.on_trial is not None
    known = hurried.follow(structs.replace(known, on_trial=structs.replace(known.on_trial, rounds=3)))
    assert "restart the daemon" in str(known.waits.reason)
    one_worker.process.kill()
    start(fleet_config(site, "one", canary), env=state(tmp_path))
    known = follower.follow(known)
    assert (known.waits, known.on_trial, known.trial and known.trial.outcome) == (None, None, "rolled-back")


def test_a_reload_that_fails_on_the_way_back_is_tried_again(device: Daemon, site: Site, tmp_path: Path) -> None:
    config = device.config.read_text()
    device.config.write_text(config.replace("[fleet]", '[models]\nonly = ["small"]\n[fleet]'))
    site.publish(put_pets(tmp_path / "other", "other"))
    site.plan("one", 2, "other")
    device.config.write_text(config.replace("[fleet]", '[models]\nonly = ["neither"]\n[fleet]'))
    assert outcome(device, tmp_path) == (1, "waiting")
    device.config.write_text(config)
    assert outcome(device, tmp_path) == (1, "rolled-back")


def test_a_verdict_against_a_plan_must_hold_twice(follower: Follower, site: Site) -> None:
    class Noisy(Canary):
        verdicts = iter(["slow", None])

        def worse(self, planned: PlannedFamily, before: CanaryResult | None, after: CanaryResult) -> str | None:
            return next(self.verdicts)

    site.plan("one", 2, "small", "large")
    noisy = replace(follower, canary=Noisy(follower.canary.folder, None))
    known = noisy.follow(remembered.read(follower.memory))
    assert (known.trial.serial, known.trial.outcome) == (2, "installed")


def test_what_a_plan_left_behind_is_no_part_of_the_next(device: Daemon, site: Site, tmp_path: Path) -> None:
    site.plan("one", 2, "small", "large")
    downloads = installed(tmp_path).parent / "downloads/pets-1"
    downloads.mkdir(parents=True)
    (downloads / "broken.json").write_text("{}")
    assert outcome(device, tmp_path) == (2, "installed")
    assert not list(installed(tmp_path).joinpath("current").rglob("broken.json"))


def test_models_whose_process_is_killed_are_run_again_in_the_next_round(
    device: Daemon, site: Site, tmp_path: Path
) -> None:
    site.plan("one", 2, "small", "large")
    agent = begin_agent(device, tmp_path)

    def proving() -> int | None:
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        return next((int(pid) for pid in children if b"prove" in Path(f"/proc/{pid}/cmdline").read_bytes()), None)

    os.kill(until(proving), signal.SIGKILL)
    said, _ = agent.communicate(timeout=120)
    assert "plan 2: waiting" in said
    assert outcome(device, tmp_path) == (2, "installed")


def test_a_thief_is_forgotten_with_the_key(device: Daemon, site: Site, tmp_path: Path) -> None:
    stolen = pair(tmp_path, "stolen")
    config = device.config.read_text()
    device.config.write_text(config.replace(f'"{site.public}"', f'"{site.public}", "{tmp_path}/stolen.pub"'))
    site.plan("one", 2**53, "small", key=stolen)
    assert outcome(device, tmp_path)[0] in (1, 2**53)
    device.config.write_text(config)
    site.plan("one", 2, "small", "large")
    assert outcome(device, tmp_path) == (2, "installed")


def test_a_plan_whose_version_was_removed_in_its_trial_is_installed_anew(
    follower: Follower, site: Site, tmp_path: Path
) -> None:
    first = remembered.read(follower.memory)
    on_trial = remembered.OnTrial(serial=1, before=7, canary={})
    installed(tmp_path).rename(tmp_path / "gone")
    known = follower.follow(structs.replace(first, judged={}, on_trial=on_trial))
    assert known.trial.outcome == "installed"
