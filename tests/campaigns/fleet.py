"""200 devices, each a real daemon and its agent, through everything that breaks: `python -m tests.campaigns.fleet`.

A period is one round of every agent, in random order, some at a time: a quarter of an hour where the timer runs them.
Prints what was seen; ends with 1 where a device served what was not published, had no family that answered, or had not
converged within two periods of the end of a fault. Needs root for the full disks (tmpfs); without, they are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import boto3
import msgspec
import s3fs
from moto.server import ThreadedMotoServer

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Bundle
from jetsel.addons.fleet.reading import read_bundle, read_index
from jetsel.addons.fleet.usage import Usage
from jetsel.base.errors import JetselError
from jetsel.client import Client
from tests.campaigns.fleet_network import Network
from tests.system.daemons import Daemon, drawn, encoded, launch, wait_until_ready
from tests.system.fleet.site import Site, fleet_config, put_canary, put_pets, run_agent, state
from tests.unit.addons.fleet.published import Pair, pair
from tests.unit.daemon.families import put_family

BUCKET = "models"
PAUSE_S = 0.05
POLICY = {  # devices read everything, and write usage
    "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"},
        {"Effect": "Allow", "Principal": "*", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{BUCKET}/usage/*"},
    ]
}
PERIODS_AFTER = 2
PERIODS_OF_AN_HOUR = 4
YEAR_S = 365 * 86400
FAULTS = {"cut": 0.25, "altered": 0.1, "replayed": 0.1}
CLOCK = "import time\n_time = time.time\ntime.time = lambda: _time() + {shift}\n"


@dataclass
class Device:
    """One device. shift_s: by how much its agent's clock is off."""

    name: str
    folder: Path
    daemon: Daemon
    shift_s: int = 0
    usages: list[Usage] = field(default_factory=list)

    def round(self) -> None:
        """Run the agent once; what it tells is read from the repository. It may fail: its disk may be full."""
        environment = {"PYTHONPATH": str(self.folder / "clock")} if self.shift_s else {}
        with contextlib.suppress(AssertionError):
            run_agent(self.daemon.config, self.folder, self.daemon.endpoint, environment)


@dataclass
class Campaign:
    """All devices, what they hang on, and what has been found wrong."""

    site: Site
    network: Network
    devices: list[Device]
    at_a_time: int
    draw: random.Random
    published: set[str] = field(default_factory=set)  # SHA-256 of every file that was published
    wrong: list[str] = field(default_factory=list)
    serial: int = 0
    bundle: Bundle | None = None
    copied_bytes: int = 0  # what moves where each plan brings all of its files

    def publish(self, folder: Path) -> None:
        """Publish a family's next version."""
        self.site.publish(folder)
        index, _ = read_index(self.site.storage, [self.site.key.public])
        bundle, _ = read_bundle(self.site.storage, index.bundles[0], [self.site.key.public])
        self.published |= {file.sha256 for file in bundle.files}
        self.bundle = bundle

    def plan(self, *models: str, key: Pair | None = None) -> None:
        """Give every device its next plan: some with all of these models, the rest with the first alone."""
        self.serial += 1
        assert self.bundle is not None
        for number, device in enumerate(self.devices):
            theirs = models if number % 2 else models[:1]
            self.site.plan(device.name, self.serial, *theirs, key=key, accuracy=0.7)
            self.copied_bytes += sum(file.compressed_bytes for file in self.bundle.files_for(theirs))

    def period(self) -> None:
        """One round of every agent, then a look at every device."""
        order = list(self.devices)
        self.draw.shuffle(order)
        with ThreadPoolExecutor(self.at_a_time) as pool:
            list(pool.map(Device.round, order))

    def converge(self, serial: int, *, limit: int = PERIODS_AFTER) -> int:
        """Run periods until every device has this plan in use; return how many it took, and note who has not."""
        for count in range(1, limit + 1):
            self.period()
            late = [device.name for device in self.devices if self.last(device).plan != serial]
            if not late:
                return count
        self.wrong.append(f"plan {serial}: {len(late)} devices have not converged within {limit} periods: {late[:5]}")
        return limit

    def told(self, device: Device) -> list[Usage]:
        """What a device has sent, each line once."""
        uploads = [
            gzip.decompress(self.network.uploads[name])
            for name in sorted(self.network.uploads)
            if name.startswith(f"usage/{device.name}/")
        ]
        lines = [msgspec.json.decode(line, type=Usage) for upload in uploads for line in upload.splitlines()]
        return list({line.sequence: line for line in lines}.values())

    def last(self, device: Device) -> Usage:
        """The newest line that a device has sent."""
        return self.told(device)[-1]

    def outcomes(self, serial: int) -> dict[str, int]:
        """What the devices' last lines say of a plan, by outcome."""
        found: dict[str, int] = {}
        for device in self.devices:
            trial = self.last(device).trial
            said = "none" if trial is None or trial.serial != serial else trial.outcome
            found[said] = found.get(said, 0) + 1
        return found


class Watch:
    """Beside the campaign, all the time: asks each daemon for an answer, and hashes what it is served from."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign, self._stop = campaign, threading.Event()
        self.asked = self.hashed = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """End, once every device has been looked at again."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        picture = encoded(drawn(0), ".png")
        known: dict[tuple[int, int], str] = {}
        while True:
            is_last = self._stop.is_set()
            for device in self._campaign.devices:
                self._ask(device, picture)
                self._hash(device, known)
                time.sleep(PAUSE_S)  # the watch is not to be what keeps the machine busy
            if is_last:
                return

    def _ask(self, device: Device, picture: bytes) -> None:
        try:
            with Client(device.daemon.endpoint, timeout_ms=60_000) as client:
                client.classify(picture)
            self.asked += 1
        except JetselError as fault:
            self._campaign.wrong.append(f"{device.name}: no answer: {fault}")

    def _hash(self, device: Device, known: dict[tuple[int, int], str]) -> None:
        current = device.folder / "state-agent/installed/current"
        for path in [*current.glob("*/*"), *current.glob("*/shipped/*")]:
            with contextlib.suppress(FileNotFoundError):  # the version was changed meanwhile
                about = path.stat()
                if not path.is_file():
                    continue
                key = about.st_ino, about.st_mtime_ns
                if key not in known:
                    known[key] = hashlib.sha256(path.read_bytes()).hexdigest()
                self.hashed += 1
                if known[key] not in self._campaign.published:
                    self._campaign.wrong.append(f"{device.name}: {path.name} was never published")


def run(campaign: Campaign, families: Path, small_disks: Sequence[Path]) -> None:
    """All phases, one after the other, each with a line of what was seen."""
    network, devices = campaign.network, campaign.devices
    campaign.publish(put_pets(families / "1", "small", "large"))
    campaign.plan("small", "large")
    say(f"plan 1 in use everywhere after {campaign.converge(1)} periods")

    campaign.publish(put_pets(families / "2", "small", "large", "larger"))
    campaign.plan("small", "large", "larger")
    network.faults = dict(FAULTS)
    for _ in range(3):
        campaign.period()
    have = sum(campaign.last(device).plan == 2 for device in devices)
    network.faults = {}
    met = ", ".join(f"{count} {kind}" for kind, count in sorted(network.done.items()))
    after = campaign.converge(2)
    say(f"faults on the way ({met}): {have} had plan 2 in 3 periods; all {after} periods after the end of the faults")

    campaign.plan("small", "large", key=pair(families, "revoked"))
    campaign.period()
    waiting = campaign.outcomes(2).get("waiting", 0)
    if any(campaign.last(device).plan != 2 for device in devices):
        campaign.wrong.append("a plan that a revoked key signed was followed")
    campaign.plan("small", "large")
    say(f"revoked key: {waiting} devices refuse its plan; {campaign.converge(campaign.serial)} periods to the next")

    campaign.publish(put_pets(families / "3", "small", "large", "larger", noise=1 / 30))
    campaign.plan("small", "large", "larger")
    for disk in small_disks:
        fill(disk)
    campaign.period()
    stuck = campaign.outcomes(campaign.serial)
    for disk in small_disks:
        (disk / "filler").unlink()
    say(f"{len(small_disks)} full disks: {stuck}; {campaign.converge(campaign.serial)} periods after there is room")

    network.is_away = True
    campaign.plan("small", "large")
    for _ in range(PERIODS_OF_AN_HOUR):
        campaign.period()
    network.is_away = False
    after = campaign.converge(campaign.serial)
    lines = [line.sequence for device in devices for line in campaign.told(device)]
    say(
        f"an hour without the repository: all {after} periods later; {len(lines)} lines of usage, none missing: "
        f"{all(whole(campaign.told(device)) for device in devices)}"
    )

    good = campaign.serial
    bad = put_pets(families / "4", "small", "large", turned=("small", "large"))
    campaign.publish(bad)
    campaign.plan("small", "large")
    campaign.period()
    outcomes = campaign.outcomes(campaign.serial)
    trials = [campaign.last(device).trial for device in devices]
    served_s = [trial.served_s for trial in trials if trial is not None and trial.served_s]
    if any(campaign.last(device).plan != good for device in devices):
        campaign.wrong.append(f"a bad model was not rolled back everywhere: {outcomes}")
    say(
        f"a bad model: {outcomes}; {len(served_s)} devices served it, for {median(served_s or [0]):.1f} s (median), "
        f"{max(served_s, default=0):.1f} s at most"
    )

    moved = network.sent_bytes["blobs"]
    say(f"blobs moved: {moved / 1e6:.1f} MB; a copy of all files for each plan: {campaign.copied_bytes / 1e6:.1f} MB")


def whole(lines: Sequence[Usage]) -> bool:
    """Whether no line is missing, and none is there twice."""
    return [line.sequence for line in lines] == list(range(1, len(lines) + 1))


def fill(disk: Path) -> None:
    """Leave no room on a disk."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def say(text: str) -> None:
    """Print a line with the minutes since the start."""
    print(f"{(time.monotonic() - BEGAN_S) / 60:5.1f} min  {text}", flush=True)


@contextlib.contextmanager
def object_store() -> Iterator[str]:
    """An S3-compatible server with a bucket, and the environment by which it is found; gives its address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    os.environ |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        s3fs.S3FileSystem().mkdir(BUCKET)
        boto3.client("s3").put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(POLICY))
        yield url
    finally:
        server.stop()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of 2 MB in a folder, where this user may mount one."""
    folder.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False)
    try:
        yield
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def main() -> int:
    """Start everything, run it, and print what was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--at-a-time", type=int, default=4, help="agents that run at the same moment")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jetsel-fleet-")))
        key = pair(root, "key")
        store = stack.enter_context(object_store())
        site = Site(f"s3://{BUCKET}", key, root / "key.pub")
        publishing.init(site.storage, [key.private])
        network = Network(f"{store}/{BUCKET}", seed=1)
        put_family(made(root / "before"), "before", "only")
        put_pets(root / "truth", "small", "large", "larger")
        canary = put_canary(root / "canary", root / "truth")
        devices, disks = [], []
        for number in range(options.devices):
            folder = made(root / f"device-{number}")
            if number % 10 == 0 and os.geteuid() == 0:
                stack.enter_context(small_disk(folder / "state-agent"))
                disks.append(folder / "state-agent")
            device = device_in(folder, number, site, network, canary, root / "before")
            stack.callback(device.daemon.process.kill)
            devices.append(device)
        for device in devices:
            wait_until_ready(device.daemon)
        off = sum(device.shift_s != 0 for device in devices)
        say(f"{len(devices)} daemons are ready; the clocks of {off} agents are off by a year")
        campaign = Campaign(site, network, devices, options.at_a_time, random.Random(2))
        watch = Watch(campaign)
        try:
            run(campaign, made(root / "families"), disks)
        finally:
            watch.stop()
        say(f"beside it {watch.asked} requests were answered, and {watch.hashed} files in use were hashed")
        for line in dict.fromkeys(campaign.wrong):
            say(f"WRONG: {line}")
        return 1 if campaign.wrong else 0


def made(folder: Path) -> Path:
    """Make a folder; return it."""
    folder.mkdir(parents=True)
    return folder


def device_in(folder: Path, number: int, site: Site, network: Network, canary: Path, before: Path) -> Device:
    """Start a device that serves a family of its own until its first plan; the clock of one in five is off."""
    name = f"device-{number}"
    shift_s = {1: YEAR_S, 3: -YEAR_S}.get(number % 10, 0)
    made(folder / "clock")
    (folder / "clock" / "sitecustomize.py").write_text(CLOCK.format(shift=shift_s))
    models = f'[models]\nstarter = false\npaths = ["{before}"]\n[server]\nworkers = 1\n'
    fleet = fleet_config(site, name, canary, url=network.url)
    daemon = launch(folder, f"{models}{fleet.replace('reserve_mb = 1', 'reserve_mb = 0')}", env=state(folder))
    return Device(name, folder, daemon, shift_s)


BEGAN_S = time.monotonic()

if __name__ == "__main__":
    sys.exit(main())
