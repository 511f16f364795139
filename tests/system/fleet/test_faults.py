"""The agent against a hostile repository, a broken way to it, and its own death: a device keeps what works."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from jetsel.addons.fleet import publishing
from tests.system.daemons import Daemon
from tests.system.fleet.site import Site, begin_agent, outcome, put_pets
from tests.unit.addons.fleet.published import pair, served
from tests.waiting import until

pytestmark = pytest.mark.slow


def test_a_file_that_was_altered_is_never_installed_and_the_repaired_one_is(
    device: Daemon, site: Site, tmp_path: Path
) -> None:
    plan = site.plan("one", 2, "small", "large")
    before = {path: path.read_bytes() for path in (site.url / "blobs").iterdir()}
    for path, content in before.items():
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    assert outcome(device, tmp_path) == (1, "waiting")
    for path, content in before.items():
        path.write_bytes(content)
    publishing.write_plan(site.storage, plan, [pair(tmp_path, "revoked").private])
    assert outcome(device, tmp_path) == (1, "waiting")
    publishing.write_plan(site.storage, plan, [site.key.private])
    assert outcome(device, tmp_path) == (2, "installed")
    old = site.plan("one", 1, "small")
    assert outcome(device, tmp_path) == (2, "waiting"), old


def test_a_model_that_does_not_run_is_refused_and_never_served(device: Daemon, site: Site, tmp_path: Path) -> None:
    put_pets(tmp_path / "odd", "small", "large")
    manifest = tmp_path / "odd" / "small.json"
    manifest.write_text(manifest.read_text().replace('"width_px": 4', '"width_px": 5'))
    shutil.rmtree(tmp_path / "odd" / "calibration")
    site.publish(tmp_path / "odd")
    site.plan("one", 2, "small")
    assert outcome(device, tmp_path) == (1, "refused")
    assert outcome(device, tmp_path) == (1, "refused")
    assert (tmp_path / "state-agent/installed/current").readlink() == Path("1")
    assert site.usage("one")[-1].trial is not None


def test_without_a_repository_it_serves_on_and_tells_everything_once_it_is_back(
    device: Daemon, site: Site, tmp_path: Path
) -> None:
    site.url.rename(tmp_path / "away")
    for _ in range(3):
        assert outcome(device, tmp_path) == (1, "waiting")
    (tmp_path / "away").rename(site.url)
    assert outcome(device, tmp_path) == (1, "installed")
    assert [line.sequence for line in site.usage("one")] == [2, 3, 4, 5]  # 1 installed the plan


def test_over_a_web_server_that_cuts_every_download_a_plan_is_followed_and_usage_arrives(
    device: Daemon, site: Site, tmp_path: Path
) -> None:
    site.plan("one", 2, "small", "large")
    with served(site.url) as (server, url):
        server.cuts_after = 997
        device.config.write_text(device.config.read_text().replace(f'url = "{site.url}"', f'url = "{url}"'))
        assert outcome(device, tmp_path) == (2, "installed")
        assert "bytes=997-" in server.ranges
    assert [line.plan for line in site.usage("one")][-1] == 2


def test_without_room_it_waits_and_what_is_installed_stays(device: Daemon, site: Site, tmp_path: Path) -> None:
    config = device.config.read_text()
    site.plan("one", 2, "small", "large")
    for line in ("reserve_mb = 1000000", "reserve_mb = 1\nstorage_mb = 0.001"):
        device.config.write_text(config.replace("reserve_mb = 1", line))
        assert outcome(device, tmp_path) == (1, "waiting")
    device.config.write_text(config)
    assert outcome(device, tmp_path) == (2, "installed")


def test_killed_at_any_step_the_next_round_ends_what_was_begun(device: Daemon, site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "state-agent"
    site.plan("one", 2, "small", "large")

    def downloaded() -> bool:
        return any((folder / "downloads").glob("pets-*"))

    def proving() -> bool:
        return any((folder / "installed").glob(".jetsel-new/000-pets/small.onnx"))

    def switched() -> bool:
        return (folder / "installed/current").readlink() == Path("2")

    for reached in (downloaded, proving, switched):
        agent = begin_agent(device, tmp_path)
        until(lambda reached=reached, agent=agent: reached() or agent.poll() is not None)
        os.killpg(agent.pid, signal.SIGKILL)
        agent.communicate(timeout=10)
    assert outcome(device, tmp_path) == (2, "installed")
    assert not (folder / "downloads").exists()
