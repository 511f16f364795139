"""A round's token, and usage that waits to be sent: bounded, in order, counted once however often the way breaks."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from jetsel.addons.fleet.agent.round import MOST_LINES, Spool, run_round
from jetsel.addons.fleet.config import Fleet
from jetsel.addons.fleet.sources import FolderSink
from jetsel.addons.fleet.usage import DeviceLimits, Usage
from jetsel.base.config import Config
from jetsel.base.errors import ConfigError, RepositoryError


def line(sequence: int) -> Usage:
    return Usage(device="one", series="ab", sequence=sequence, at_s=0.0, plan=0, limits=DeviceLimits(storage_mb=1.0))


class Breaking(FolderSink):
    """A way that breaks behind the last byte: what was sent is there, and the device does not know."""

    def put(self, name: str, content: bytes) -> None:
        super().put(name, content)
        raise RepositoryError("the way broke")


def sequences(folder: Path) -> list[int]:
    """Of every line that was sent, in the order of the uploads' names."""
    uploads = [gzip.decompress(path.read_bytes()).splitlines() for path in sorted(folder.rglob("*.gz"))]
    return [msgspec.json.decode(one, type=Usage).sequence for upload in uploads for one in upload]


def test_what_was_sent_and_not_known_to_be_is_sent_again_under_the_same_name(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "usage.jsonl", 10**6)
    spool.add(line(1))
    with pytest.raises(RepositoryError, match="broke"):
        spool.send(Breaking(tmp_path))
    spool.add(line(2))
    assert spool.send(FolderSink(tmp_path)) == 2
    assert spool.send(FolderSink(tmp_path)) == 0
    assert sequences(tmp_path) == [1, 2]


def test_the_oldest_lines_go_where_they_are_too_many(tmp_path: Path) -> None:
    size = len(msgspec.json.encode(line(1))) + 1
    spool = Spool(tmp_path / "usage.jsonl", 2 * size)
    assert [spool.add(line(number)) for number in (1, 2, 3, 4)] == [0, 0, 1, 1]
    spool.send(FolderSink(tmp_path))
    assert sequences(tmp_path) == [3, 4]


def test_weeks_offline_are_sent_in_pieces(tmp_path: Path) -> None:
    count = MOST_LINES + 1
    (tmp_path / "usage.jsonl").write_bytes(b"\n".join(msgspec.json.encode(line(n)) for n in range(count)) + b"\n")
    assert Spool(tmp_path / "usage.jsonl", 10**9).send(FolderSink(tmp_path)) == count
    assert len(list(tmp_path.rglob("*.gz"))) == 2
    assert sequences(tmp_path) == list(range(count))


def test_a_damaged_line_is_dropped_and_counted_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "usage.jsonl").write_bytes(b"no line at all\n")
    spool = Spool(tmp_path / "usage.jsonl", 10**6)
    assert spool.add(line(1)) == 1
    assert spool.send(FolderSink(tmp_path)) == 1


def test_a_token_that_every_user_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    fleet = Fleet(url=str(tmp_path), device="one", keys=["/nonexistent"], token_file=str(token))
    with pytest.raises(ConfigError, match=r"fleet\.token_file.*chmod o-rwx"):
        run_round(Config(), fleet, None)
