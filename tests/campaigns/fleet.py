"""200 devices, each a real daemon and its agent, through everything that breaks: `python -m tests.campaigns.fleet`.

A period is one round of every agent, in random order, some at a time: a quarter of an hour where the timer runs them.
Prints what was seen; ends with 1 where a device served what was not published, had no family that answered, or had not
converged within two periods of the end of a fault. Needs root for the full disks (tmpfs); without, they are left out.
"""

import argparse
import contextlib
import gzip
import hashlib
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Bundle
from jetsel.addons.fleet.reading import read_bundle, read_index
from jetsel.addons.fleet.usage import Usage
from jetsel.base.errors import JetselError
from jetsel.client import Client
from tests.campaigns.fleet_devices import Device, device_in, fill, small_disk
from tests.campaigns.fleet_network import Network
from tests.system.daemons import drawn, encoded, wait_until_ready
from tests.system.fleet.site import Site, fleet_config, put_canary, put_pets
from tests.unit.addons.fleet.object_store import BUCKET, bucket
from tests.unit.addons.fleet.published import Pair, pair
from tests.unit.daemon.families import put_family

PAUSE_S = 0.05
POLICY = {  # devices read everything, and write usage
    "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"},
        {"Effect": "Allow", "Principal": "*", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{BUCKET}/*/usage/*"},
    ]
}
PERIODS_AFTER = 2
PERIODS_OF_AN_HOUR = 4
FAULTS = {"cut": 0.25, "altered": 0.1, "replayed": 0.1}


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

    def converge(self) -> int:
        """Run periods until every device has the newest plan in use; return how many, and note who has not."""
        for count in range(1, PERIODS_AFTER + 1):
            self.period()
            if all(self.last(device).plan == self.serial for device in self.devices):
                return count
        self.check_in_use(self.serial, f"not converged within {PERIODS_AFTER} periods")
        return PERIODS_AFTER

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

    def outcomes(self, serial: int) -> Counter[str]:
        """What the devices' last lines say of a plan, by outcome."""
        trials = [self.last(device).trial for device in self.devices]
        return Counter("none" if one is None or one.serial != serial else one.outcome for one in trials)

    def check_in_use(self, serial: int, what: str) -> None:
        """Note as wrong if a device has another plan than this in use."""
        if others := [device.name for device in self.devices if self.last(device).plan != serial]:
            self.wrong.append(f"{what}: {len(others)} devices have not plan {serial}: {others[:5]}")


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
        picture, is_last = encoded(drawn(0), ".png"), False
        while not is_last:
            is_last = self._stop.is_set()
            for device in self._campaign.devices:
                self._ask(device, picture)
                self._hash(device)
                time.sleep(PAUSE_S)  # the watch is not to be what keeps the machine busy

    def _ask(self, device: Device, picture: bytes) -> None:
        try:
            with Client(device.daemon.endpoint, timeout_ms=60_000) as client:
                client.classify(picture)
            self.asked += 1
        except JetselError as fault:
            self._campaign.wrong.append(f"{device.name}: no answer: {fault}")

    def _hash(self, device: Device) -> None:
        current = device.folder / "state-agent/installed/current"
        for path in [*current.glob("*/*"), *current.glob("*/shipped/*")]:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # the version was changed meanwhile
                is_published = hashlib.sha256(path.read_bytes()).hexdigest() in self._campaign.published
                self.hashed += 1
                if not is_published:
                    self._campaign.wrong.append(f"{device.name}: {path.name} was never published")


def run(campaign: Campaign, families: Path, small_disks: Sequence[Path]) -> None:
    """All phases, one after the other, each with a line of what was seen."""
    small, three = ("small", "large"), ("small", "large", "larger")
    network = campaign.network
    campaign.publish(put_pets(families / "1", *small))
    campaign.plan(*small)
    say(f"plan 1 in use everywhere after {campaign.converge()} periods")

    campaign.publish(put_pets(families / "2", *three))
    campaign.plan(*three)
    network.faults = dict(FAULTS)
    for _ in range(3):
        campaign.period()
    have = sum(campaign.last(device).plan == 2 for device in campaign.devices)
    network.faults = {}
    met = ", ".join(f"{count} {kind}" for kind, count in sorted(network.done.items()))
    after = campaign.converge()
    say(f"faults on the way ({met}): {have} had plan 2 in 3 periods; all {after} periods after the end of the faults")

    campaign.plan(*small, key=pair(families, "revoked"))
    campaign.period()
    campaign.check_in_use(2, "a plan that a revoked key signed was followed")
    waiting = campaign.outcomes(2)["waiting"]
    campaign.plan(*small)
    say(f"revoked key: {waiting} devices refuse its plan; {campaign.converge()} periods to the next")

    campaign.publish(put_pets(families / "3", *three, noise=1 / 30))
    campaign.plan(*three)
    for disk in small_disks:
        fill(disk)
    campaign.period()
    stuck = dict(campaign.outcomes(campaign.serial))
    for disk in small_disks:
        (disk / "filler").unlink()
    say(f"{len(small_disks)} full disks: {stuck}; {campaign.converge()} periods after there is room")

    network.is_away = True
    campaign.plan(*small)
    for _ in range(PERIODS_OF_AN_HOUR):
        campaign.period()
    network.is_away = False
    after = campaign.converge()
    told = [[line.sequence for line in campaign.told(device)] for device in campaign.devices]
    whole = all(sequences == list(range(1, len(sequences) + 1)) for sequences in told)
    say(
        f"an hour without the repository: all {after} periods later; {sum(map(len, told))} lines, none missing: {whole}"
    )

    good = campaign.serial
    campaign.publish(put_pets(families / "4", *small, turned=small))
    campaign.plan(*small)
    campaign.period()
    campaign.check_in_use(good, "a bad model was not rolled back everywhere")
    trials = [campaign.last(device).trial for device in campaign.devices]
    served_s = [trial.served_s for trial in trials if trial is not None and trial.served_s]
    say(
        f"a bad model: {dict(campaign.outcomes(campaign.serial))}; {len(served_s)} devices served it, for "
        f"{median(served_s or [0]):.1f} s (median), {max(served_s, default=0):.1f} s at most"
    )
    moved = network.sent_bytes["blobs"]
    say(f"blobs moved: {moved / 1e6:.1f} MB; a copy of all files for each plan: {campaign.copied_bytes / 1e6:.1f} MB")


def say(text: str) -> None:
    """Print a line with the minutes since the start."""
    print(f"{(time.monotonic() - BEGAN_S) / 60:5.1f} min  {text}", flush=True)


def main() -> int:
    """Start everything, run it, and print what was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--at-a-time", type=int, default=4, help="agents that run at the same moment")
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jetsel-fleet-")))
        key = pair(root, "key")
        url = stack.enter_context(bucket(os.environ.__setitem__, POLICY))
        site = Site(url, key, root / "key.pub")
        publishing.init(site.storage, [key.private])
        network = Network(url.replace("s3:/", os.environ["AWS_ENDPOINT_URL"]), seed=1)
        for name in ("before", "families"):
            (root / name).mkdir()
        put_family(root / "before", "before", "only")
        put_pets(root / "truth", "small", "large", "larger")
        canary = put_canary(root / "canary", root / "truth")
        devices, disks = [], []
        for number in range(options.devices):
            folder = root / f"device-{number}"
            if number % 10 == 0 and os.geteuid() == 0:
                disks.append(stack.enter_context(small_disk(folder / "state-agent")))
            config = fleet_config(site, f"device-{number}", canary, url=network.url)
            devices.append(device_in(folder, number, config, root / "before"))
            stack.callback(devices[-1].daemon.process.kill)
        for device in devices:
            wait_until_ready(device.daemon)
        off = sum(device.shift_s != 0 for device in devices)
        say(f"{len(devices)} daemons are ready; the clocks of {off} agents are off by a year")
        campaign = Campaign(site, network, devices, options.at_a_time, random.Random(2))
        watch = Watch(campaign)
        try:
            run(campaign, root / "families", disks)
        finally:
            watch.stop()
        say(f"beside it {watch.asked} requests were answered, and {watch.hashed} files in use were hashed")
        for line in dict.fromkeys(campaign.wrong):
            say(f"WRONG: {line}")
        return 1 if campaign.wrong else 0


BEGAN_S = time.monotonic()

if __name__ == "__main__":
    sys.exit(main())
