"""Uploads as a table: each line once, whatever comes twice, and nobody's damage is another's."""

from __future__ import annotations

import gzip
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from jetsel.base.errors import RepositoryError
from jetsel.fleet.manager.devices import Served, read_devices
from jetsel.fleet.manager.metadata import Metadata
from jetsel.fleet.storage import Storage
from tests.unit.fleet.managed import told, upload


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
        b'{"device":"bad","series":"s","sequence":1,"at_s":0,"plan":0,"limits":{"storage_mb":1},"requests":{"ok":%d}}'
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
    assert found.served == {0: Served(30, 0, None), 2: Served(150, 10, 8.0)}
    assert found.answers == {"pets": 180}
    assert found.takes["pets"]["large"].energy_mj == 20.0
    steady = Metadata(storage)
    upload(storage, told("b", 1, 30, **power), told("b", 2, 90, **power))
    steady.gather()
    found = read_devices(steady)["b"]
    assert (found.period_s, found.rate_hz, found.idle_w) == (60.0, 1.0, 2.0)
