"""Uploads as a table: each line once, nobody's damage is another's; and the faults of a device that they show."""

import gzip
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from jetsel.addons.fleet.documents import Entry, Plan, PlannedFamily
from jetsel.addons.fleet.manager.devices import ServedPlan, read_devices
from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.manager.status import DeviceStatus, statuses
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import Trial, Usage
from jetsel.base.errors import RepositoryError
from tests.unit.addons.fleet.published import told, upload


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "it's") if request.param == "folder" else f"memory://{uuid.uuid4().hex}")


def sequences(table: Metadata) -> list[tuple[str, int]]:
    return sorted(table.query("SELECT device, sequence FROM usage"))


def test_each_line_is_there_once_and_stays(storage: Storage) -> None:
    upload(storage, told("a", 1), told("a", 2))
    table = Metadata(storage)
    assert table.gather() == {}
    upload(storage, told("a", 1), told("a", 2), told("a", 3))  # sent again, since no answer had come
    upload(storage, told("a", 3), told("a", 4))
    assert table.gather() == {}
    for name in storage.names("usage"):
        storage.remove(name)
    upload(storage, told("b", 1))
    assert Metadata(storage).gather() == {}
    assert sequences(Metadata(storage)) == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]
    (part,) = storage.names("parquet")
    storage.write(part, b"damaged")
    with pytest.raises(RepositoryError, match="remove that folder"):
        Metadata(storage).gather()


def test_an_upload_that_is_not_understood_is_skipped_by_name_and_no_other(storage: Storage) -> None:
    good = told("good", 1)
    line = (
        b'{"device":"bad","series":"s","sequence":1,"at_s":0,"plan":0,"limits":{"storage_mb":1},'
        b'"daemon":{"requests":{"ok":%d}}}'
    )
    hostile = {
        "not a gzip": b"\x00junk",
        "cut short": gzip.compress(line % 1)[:-9],
        "not understood": gzip.compress(line % 1 + b"\n{"),
        "2**53": gzip.compress(line % 2**60),
        "another device": gzip.compress(line.replace(b"bad", b"good") % 1),
        "expands": gzip.compress(b" " * 2**27),
        "line": gzip.compress(line.replace(b'"s"', b'"%s"' % (b"s" * 34_000_000)) % 1),
    }
    upload(storage, good)
    for number, content in enumerate(hostile.values()):
        storage.write(f"usage/bad/s-{number}.jsonl.gz", content)
    storage.write("usage/bad/*.jsonl.gz", gzip.compress(line % 1))
    table = Metadata(storage)
    skipped = table.gather()
    assert sequences(table) == [("good", 1)]
    assert skipped.keys() == {
        *(f"usage/bad/s-{number}.jsonl.gz" for number in range(len(hostile))),
        "usage/bad/*.jsonl.gz",
    }
    assert "not a gzip" in skipped["usage/bad/s-0.jsonl.gz"]
    assert "another device" in skipped["usage/bad/s-4.jsonl.gz"]
    assert "a line has more than" in skipped["usage/bad/s-6.jsonl.gz"]


@pytest.mark.slow
def test_uploads_are_read_a_few_megabytes_at_a_time(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, together = os.urandom(2**20), []
    for number in range(40):
        storage.write(f"usage/bad/s-{number}.jsonl.gz", noise * 15)
    read = storage.contents

    def contents(names: Sequence[str]) -> dict[str, bytes]:
        together.append(len(names))
        return read(names)

    monkeypatch.setattr(storage, "contents", contents)
    upload(storage, told("good", 1))
    table = Metadata(storage)
    assert len(table.gather()) == 40
    assert sequences(table) == [("good", 1)]
    assert max(together) <= 3


def test_lines_add_up_by_device(storage: Storage) -> None:
    power = {"watts": 3.0, "energy_j": 60.0}
    upload(
        storage,
        told("a", 1, 30, **power),
        told("a", 2, 90, requests={"ok": 80, "busy": 10}, plan=2, p95_ms=7.0, **power),
    )
    upload(storage, structs.replace(told("a", 5, 60, plan=2, p95_ms=9.0, **power), at_s=1e9))  # the clock was set
    table = Metadata(storage)
    table.gather()
    found = read_devices(table)["a"]
    assert (found.line.sequence, found.missing, found.missing_first) == (5, 2, "s-3")
    assert found.served == {0: ServedPlan(30, 0, None), 2: ServedPlan(150, 10, 8.0)}
    assert found.answers == {"pets": 180}
    assert found.takes["pets"]["large"].energy_mj == 20.0
    steady = Metadata(storage)
    upload(storage, told("b", 1, 30, **power), told("b", 2, 90, **power))
    steady.gather()
    found = read_devices(steady)["b"]
    assert (found.period_s, found.rate_hz, found.idle_w) == (60.0, 1.0, 2.0)


def total(sequence: int, answers: int, **changes: object) -> Usage:
    """A line of one daemon, which has answered this many requests since its start."""
    line = told("a", sequence, answers, **{"instance": "1", **changes})
    (family,) = line.daemon.families
    families = (structs.replace(family, classes={"pug": answers}),)
    return structs.replace(line, daemon=structs.replace(line.daemon, families=families))


def counted(storage: Storage) -> tuple[int, int, int]:
    """Requests, answers of the family, and answers with the label of the only device."""
    table = Metadata(storage)
    table.gather()
    (found,) = read_devices(table).values()
    return sum(one.requests for one in found.served.values()), found.answers["pets"], found.classes["pets"]["pug"]


def test_totals_are_subtracted_whatever_is_lost_sent_twice_or_forgotten(storage: Storage) -> None:
    upload(storage, total(1, 10), total(2, 30))
    upload(storage, total(2, 30), total(5, 70))  # again, and two lines never came
    assert counted(storage) == (70, 70, 70)
    upload(storage, total(1, 75, series="t"))  # the agent had forgotten what it had sent
    assert counted(storage) == (75, 75, 75)
    upload(storage, total(2, 4, series="t", instance="2"))  # another daemon begins anew
    assert counted(storage) == (79, 79, 79)
    upload(storage, total(3, 3, series="t", instance="2"))  # no total falls: a liar's counts nothing
    assert counted(storage) == (79, 79, 79)


def test_what_the_canary_asked_is_no_usage(storage: Storage) -> None:
    upload(storage, total(1, 10), total(2, 210, canary=True), total(3, 215))
    assert counted(storage) == (15, 15, 15)


def test_a_storage_whose_clock_is_set_back_hides_no_line_and_no_upload(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    upload(storage, total(1, 10))
    assert counted(storage) == (10, 10, 10)

    first = "usage/a/s-000000001.jsonl.gz"
    began_s = (tmp_path / first).stat().st_mtime

    def set_back(name: str, *lines: Usage) -> None:
        upload(storage, *lines)
        os.utime(tmp_path / name, (began_s - 3600.0 * lines[-1].sequence,) * 2)

    set_back(first, total(1, 10), total(2, 30))  # an upload that grew
    set_back("usage/a/s-000000003.jsonl.gz", total(3, 70))
    assert counted(storage) == (70, 70, 70)
    table = Metadata(storage)
    assert sequences(table) == [("a", 1), ("a", 2), ("a", 3)]
    (device,) = read_devices(table).values()
    assert device.line.sequence == 3


FAMILIES = (PlannedFamily(bundle=Entry(family="pets", version=1, sha256="1" * 64), models=("small",)),)


def stands(storage: Storage, *lines: Usage, late_s: float = 0.0, planned: int = 0) -> DeviceStatus:
    """How a device stands that told these lines, so long after its upload; its plan was written 600 s before."""
    upload(storage, *lines)
    table = Metadata(storage)
    table.gather()
    devices = read_devices(table)
    (device,) = devices.values()
    plan = Plan(device="a", serial=planned or 1, families=FAMILIES)
    plans = {"a": (plan, device.uploaded_s - 600)} if planned else {}
    (found,) = statuses(devices, plans, device.uploaded_s + late_s)
    return found


def now_s(folder: Path) -> float:
    """The storage's clock."""
    (folder / "probe").write_bytes(b"")
    return (folder / "probe").stat().st_mtime


def test_each_fault_is_named(tmp_path: Path) -> None:
    trial = Trial(serial=3, outcome="rolled-back", reason="slower")
    lines = [
        told("a", 2, at_s=0),
        told("a", 4, at_s=120 + now_s(tmp_path), trial=trial, silence="away", dropped=7),
    ]
    found = stands(Storage(str(tmp_path)), lines[0], lines[1], planned=5)
    assert found.missing == 2
    said = "; ".join(found.faults)
    for words in ("rolled-back: slower", "away", "2 lines are missing, s-1", "7 lines were lost"):
        assert words in said
