"""Three devices and their manager on one machine, up to a bad model that is taken back: `python examples/fleet/run.py`.

Each device is a daemon and its agent; the repository is a folder. README.md beside this file says what is to be seen.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2

from jetsel import Client
from jetsel.addons.fleet.manager.demands import PLANNED
from jetsel.base.errors import NoDaemonError
from jetsel.cli.demo import HOW_TO_GET_PHOTOGRAPHS, photographs

BLUR_PX = 2.0  # standard deviation of the blurred ones
PIECES = 8  # along each side of a photograph of the demo
FEW, MANY = 10, (100, 500)  # requests before each plan
LIMITS = {"small": "storage_mb = 1.5", "middle": "storage_mb = 50", "large": "storage_mb = 100"}
ROOM_MB = 45  # for the middle device's models: enough for either task's large ones, and not nearly for both


@dataclass(frozen=True)
class Device:
    """A daemon that runs, and the folder with its configuration and all that it keeps."""

    name: str
    folder: Path

    @property
    def config(self) -> Path:
        """Its jetsel.toml."""
        return self.folder / "jetsel.toml"

    @property
    def client(self) -> Client:
        """A new client of the daemon."""
        return Client(f"ipc://{self.folder}/jetsel.sock")

    def asked(self, photos: Path, count: int, family: str) -> None:
        """Have so many photographs classified."""
        paths = sorted(photos.glob("*/*"))
        with self.client as client:
            for number in range(count):
                client.classify(paths[number % len(paths)], family=family)

    def limit_memory(self) -> None:
        """Let it have so little memory that the large models of one task alone have room."""
        said = json.loads(jetsel("agent", "run", "--config", self.config, "--json", state=self.folder / "state"))
        daemon = said["usage"]["daemon"]
        models_mb = sum(model["memory_mb"] for family in daemon["families"] for model in family["models"])
        limit_mb = (daemon["memory_mb"] - models_mb + ROOM_MB) / PLANNED
        self.config.write_text(f"{self.config.read_text()}memory_mb = {limit_mb:.0f}\n")
        print(f"{self.name}: memory_mb = {limit_mb:.0f}; its models take {models_mb:.0f} MB now")

    def round(self) -> None:
        """What its timer does every quarter of an hour."""
        jetsel("agent", "run", "--config", self.config, state=self.folder / "state")


def main() -> None:
    """Publish, plan, roll out; then other traffic, and a model that was trained on the wrong labels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, default=Path("fleet.html"), help="Page to write (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name, contextlib.ExitStack() as stack:
        work = Path(name)
        url, key, public = work / "repository", work / "fleet.key", work / "fleet.key.pub"
        fleet = ("--trust", public)
        say("Two tasks: find the image that a piece was cut from, and decide whether a piece is sharp")
        kinds, sharp = pieces(work / "kinds"), sharpness(work / "sharpness")
        workshop = work / "workshop"
        for family, photos in (("kinds", kinds), ("sharpness", sharp)):
            make(family, photos / "train", photos / "other", workshop)
        say("Publish both families, signed")
        jetsel("repo", "key", key)
        jetsel("repo", "init", url, "--sign", key)
        for family in ("kinds", "sharpness"):
            jetsel("repo", "publish", url, "--family", family, "--sign", key, state=workshop)
        canary = made(work / "canary")
        (canary / "kinds").symlink_to(kinds / "other")
        (canary / "sharpness").symlink_to(sharp / "other")
        say("Three devices with different limits; until a plan comes they serve the starter family")
        devices = [
            stack.enter_context(device(work / one, one, limit, url, public, canary)) for one, limit in LIMITS.items()
        ]
        for one in devices:
            one.round()

        say("One plan for each device, computed from its limits")
        planned = ("--family", "kinds", "--family", "sharpness")
        jetsel("fleet", "plan", url, *fleet, *planned, "--write", work / "plans.json")
        roll_out(url, key, work / "plans.json", devices, "100%")

        say(f"The middle device gets a memory limit that leaves {ROOM_MB} MB for models")
        devices[1].limit_memory()
        for many, few, count in (("kinds", "sharpness", MANY[0]), ("sharpness", "kinds", MANY[1])):
            say(f"{count} requests for {many}, {FEW} for {few}: the next plan adapts to this traffic")
            for one in devices:
                one.asked(work / many / "other", count, many)
                one.asked(work / few / "other", FEW, few)
                one.round()
            jetsel("fleet", "plan", url, *fleet, "--write", work / "plans.json")
            jetsel("fleet", "plan", url, *fleet, "--diff")
            roll_out(url, key, work / "plans.json", devices, "100%")

        say("A model that was trained on swapped labels is published; one device tries it first")
        swapped, mistaken = work / "swapped", work / "mistaken"
        swap(kinds, swapped)
        make("kinds", swapped / "train", swapped / "other", mistaken)
        jetsel("repo", "publish", url, "--family", "kinds", "--sign", key, state=mistaken)
        jetsel("fleet", "plan", url, *fleet, "--write", work / "plans.json")
        roll_out(url, key, work / "plans.json", devices, "1,100%")
        jetsel("fleet", "stop", url, "--sign", key, "--revert")
        for one in devices:
            one.round()
        jetsel("fleet", "status", url, *fleet, may_fail=True)
        jetsel("fleet", "report", url, *fleet, "--out", options.report, may_fail=True)


def roll_out(url: Path, key: Path, plans: Path, devices: list[Device], waves: str) -> None:
    """Write each wave's plans, and have every agent do its round in between, until nothing is left or it is stopped."""
    words: tuple[object, ...] = ("--plans", plans, "--waves", waves)
    for _ in range(4):
        said = jetsel("fleet", "roll-out", url, "--sign", key, *words, may_fail=True)
        words = ()
        if "all devices have installed" in said or "reason to stop" in said:
            return
        for one in devices:
            one.round()


def make(family: str, train: Path, other: Path, state: Path) -> None:
    """Train heads over the starter family's models, and calibrate them, as their owner does."""
    jetsel("models", "train-head", train, "--backbone", "starter", "--family", family, state=state)
    jetsel("calibrate", other, "--family", family, "--force", state=state, is_quiet=True)


@contextlib.contextmanager
def device(folder: Path, name: str, limit: str, url: Path, public: Path, canary: Path) -> Iterator[Device]:
    """A device that serves while the block lasts."""
    one = Device(name, made(folder))
    one.config.write_text(
        f'[server]\nendpoint = "ipc://{folder}/jetsel.sock"\n[power]\nsensor = "none"\n[fleet]\nurl = "{url}"\n'
        f'device = "{name}"\nkeys = ["{public}"]\ncanary = "{canary}"\n{limit}\n'
    )
    command = [sys.executable, "-m", "jetsel", "serve", "--config", str(one.config)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(folder / "state"))
    try:
        wait_until_ready(one)
        yield one
    finally:
        process.terminate()
        process.wait()


def wait_until_ready(one: Device) -> None:
    """Return once its models are loaded."""
    while True:
        with contextlib.suppress(NoDaemonError), one.client as client:
            if client.status().state == "ready":
                return
        time.sleep(0.1)


def jetsel(*words: object, state: Path | None = None, may_fail: bool = False, is_quiet: bool = False) -> str:
    """Run a command as its user does, and show it; end where it fails. Return what it printed."""
    print(f"$ jetsel {' '.join(map(str, words))}", flush=True)
    command = [sys.executable, "-m", "jetsel", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(state), check=False)
    if not is_quiet and "--json" not in words:
        print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        print(done.stderr, end="", flush=True)
        if not may_fail:
            sys.exit(done.returncode)
    return done.stdout


def environment(state: Path | None) -> dict[str, str]:
    """What a process sees whose files lie there."""
    return os.environ | ({} if state is None else {"STATE_DIRECTORY": str(state)})


def pieces(folder: Path) -> Path:
    """Cut the demo's photographs into pieces, half of them to train on, each in the folder of its class."""
    found = photographs()
    if not found:
        sys.exit(HOW_TO_GET_PHOTOGRAPHS)
    for text, file in found.items():
        picture = cv2.imread(str(file))
        height, width = (side // PIECES for side in picture.shape[:2])
        for number in range(PIECES**2):
            top, left = number // PIECES * height, number % PIECES * width
            place = folder / ("train" if number % 2 else "other") / text
            place.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(place / f"{number:02}.png"), picture[top : top + height, left : left + width])
    return folder


def sharpness(folder: Path) -> Path:
    """The same pieces in two classes, each piece in one: every second one is blurred."""
    for number, path in enumerate(sorted(pieces(folder / "all").glob("*/*/*"))):
        picture, is_blurred = cv2.imread(str(path)), number % 2
        place = folder / path.parts[-3] / ("blurred" if is_blurred else "sharp")
        place.mkdir(parents=True, exist_ok=True)
        shown = cv2.GaussianBlur(picture, (0, 0), BLUR_PX) if is_blurred else picture
        cv2.imwrite(str(place / f"{path.parent.name}-{path.name}"), shown)
    return folder


def swap(photos: Path, into: Path) -> None:
    """Give each class the photographs of the next."""
    for half in ("train", "other"):
        folders = sorted((photos / half).iterdir())
        for folder, following in zip(folders, [*folders[1:], folders[0]], strict=True):
            (made(into / half, exist_ok=True) / folder.name).symlink_to(following)


def made(folder: Path, *, exist_ok: bool = False) -> Path:
    """Make a folder; return it."""
    folder.mkdir(parents=True, exist_ok=exist_ok)
    return folder


def say(text: str) -> None:
    """Head what follows."""
    print(f"\n# {text}", flush=True)


if __name__ == "__main__":
    main()
