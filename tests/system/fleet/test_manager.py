"""`jetsel repo` and `jetsel fleet` as processes: a family is published; plans go out in waves and come back."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.addons.fleet.manager.planning import read_plans
from jetsel.addons.fleet.signing import read_key
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import DeviceLimits, Trial
from tests.system.command import jetsel
from tests.unit.addons.fleet.object_store import bucket
from tests.unit.addons.fleet.published import Pair, pair, repository, told, upload
from tests.unit.daemon.families import put_family

pytestmark = pytest.mark.slow

ROOMS_MB = {"large-a": 100.0, "large-b": 100.0, "small-c": 0.007, "tiny-d": 0.001}


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A repository in an object store; the other tests have one in a folder."""
    with bucket(monkeypatch.setenv) as address:
        yield address


@pytest.fixture
def key(tmp_path: Path) -> Pair:
    return pair(tmp_path, "key")


def ran(*words: object, rc: int = 0) -> str:
    done = jetsel("fleet", *words)
    assert done.returncode == rc, done.stderr
    return done.stdout


def tell(
    storage: Storage, sequence: int, plan: int, trial: Trial | None = None, devices: tuple[str, ...] = tuple(ROOMS_MB)
) -> None:
    for name in devices:
        limits = DeviceLimits(storage_mb=ROOMS_MB[name])
        upload(storage, told(name, sequence, 60, limits=limits, plan=plan, trial=trial))


def test_a_plan_reaches_a_fleet_and_comes_back(url: str, key: Pair, tmp_path: Path) -> None:
    storage = repository(url, tmp_path, key)
    trust, sign = ("--trust", tmp_path / "key.pub"), ("--sign", tmp_path / "key")
    tell(storage, 1, 0)
    tell(storage, 2, 0)
    storage.write("usage/large-a/s-9.jsonl.gz", b"damaged")
    stands = json.loads(ran("status", url, *trust, "--json", rc=1))
    assert [one["device"] for one in stands["devices"]] == sorted(ROOMS_MB)
    assert list(stands["skipped"]) == ["usage/large-a/s-9.jsonl.gz"]
    storage.remove("usage/large-a/s-9.jsonl.gz")

    plans = tmp_path / "plans.json"
    proposed = {one["device"]: one for one in json.loads(ran("plan", url, *trust, "--json", "--write", plans))}
    assert {name: one["after"] and one["after"]["accuracy"] for name, one in proposed.items()} == {
        "large-a": 0.8,
        "large-b": 0.8,
        "small-c": 0.6,
        "tiny-d": None,
    }
    assert "small-c: pets: +small\n" in ran("plan", url, *trust, "--diff")
    shown = ran("plan", url, *trust)
    assert "storage (80.0 % without)" in shown
    assert max(map(len, shown.splitlines())) <= 120
    assert "storage is too small" in shown

    begun = json.loads(ran("roll-out", url, *sign, "--plans", plans, "--waves", "1,100%", "--json"))
    (first,) = begun["released"]
    assert (len(begun["waiting"]), begun["done"]) == (1, False)
    tell(storage, 3, 1, Trial(serial=1, outcome="installed"), (first,))
    second = json.loads(ran("roll-out", url, *sign, "--json"))
    assert len(second["released"]) == 2
    others = tuple(second["released"])
    tell(storage, 3, 0, Trial(serial=1, outcome="rolled-back", reason="slower"), others)
    assert "reason to stop: " + others[0] in ran("roll-out", url, *sign, rc=1)
    assert "0 devices get back" in ran("stop", url, *sign, "--revert", "--because", "slower")
    assert jetsel("fleet", "roll-out", url, *sign).returncode == 1
    written = read_plans(storage, [read_key(tmp_path / "key.pub")])
    assert {name: plan.serial for name, plan in written.items()} == {first: 1, **dict.fromkeys(others, 1)}

    page = tmp_path / "report.html"
    ran("report", url, *trust, "--out", page)
    assert "Accuracy against time" in page.read_text()


def test_with_wait_it_goes_on_to_the_end(key: Pair, tmp_path: Path) -> None:
    url = str(tmp_path / "repository")
    storage = repository(url, tmp_path, key)
    sign, plans = ("--sign", tmp_path / "key"), tmp_path / "plans.json"
    for sequence in (1, 2):
        tell(storage, sequence, 0, None, ("large-a",))
    ran("plan", url, "--trust", tmp_path / "key.pub", "--write", plans)
    words = ["fleet", "roll-out", url, *sign, "--plans", plans, "--wait", "--poll-s", 1, "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "jetsel", *map(str, words)], stdout=subprocess.PIPE, text=True
    ) as waiting:
        assert json.loads(waiting.stdout.readline())["released"] == ["large-a"]
        tell(storage, 3, 1, Trial(serial=1, outcome="installed"), ("large-a",))
        *_, last = (json.loads(line) for line in waiting.stdout)
    assert (last["done"], waiting.returncode) == (True, 0)


def test_a_family_is_published_verified_and_cleared_up_after(tmp_path: Path) -> None:
    models, url, key = tmp_path / "models", tmp_path / "repository", tmp_path / "key"
    models.mkdir()
    put_family(models, "pets", "small", "large")
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[models]\npaths = ["{models}"]\nstarter = false\n')
    trust = ("--trust", f"{key}.pub")
    for command in (
        ("key", key),
        ("init", url, "--sign", key),
        ("publish", url, "--family", "pets", "--sign", key, "--config", config),
        ("verify", url, *trust),
    ):
        done = jetsel("repo", *command)
        assert (done.returncode, done.stderr) == (0, "")
    (bundle,) = json.loads(jetsel("repo", "list", url, *trust, "--json").stdout)["bundles"]
    assert [model["name"] for model in bundle["bundle"]["models"]] == ["small", "large"]
    assert "small, large" in jetsel("repo", "list", url, *trust).stdout
    again = jetsel("repo", "publish", url, "--family", "pets", "--sign", key, "--config", config)
    assert "nothing changed" in again.stdout
    blob = url / "blobs" / f"{bundle['bundle']['files'][0]['sha256']}.gz"
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    damaged = jetsel("repo", "verify", url, *trust)
    assert damaged.returncode == 1
    assert "altered" in damaged.stderr
    (url / "blobs" / "left").write_bytes(b"12345")
    assert "removed 0 files" in jetsel("repo", "gc", url, *trust).stdout
    cleared = json.loads(jetsel("repo", "gc", url, *trust, "--younger-than-s", 0, "--json").stdout)
    assert cleared == {"removed": ["blobs/left"], "bytes": 5}
