"""The daemon of `jetsel demo` where it does not come up: what is told, and that nothing is left."""

import sys
import tempfile
from pathlib import Path

import pytest

from jetsel.base.config import parse
from jetsel.base.errors import InternalError
from jetsel.cli import temporary


def test_its_calibrations_go_with_it() -> None:
    with temporary.daemon() as client:
        file = Path(client.status().config or "")
        assert parse(file.read_text(encoding="utf-8")).models.calibrations == str(file.parent / "calibrations")
    assert not file.parent.exists()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("echo first; echo no memory for it >&2; exit 3", "it ended with status 3: no memory for it"),
        ("exit 4", "it ended with status 4: its log is empty"),
        ("echo at work; exec sleep 1000", "it has not answered for 0.3 s: at work"),
    ],
)
def test_a_daemon_that_does_not_come_up_is_told_with_its_last_words_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    (instead := tmp_path / "python").write_text(f"#!/bin/sh\n{program}\n")
    instead.chmod(0o700)
    (place := tmp_path / "place").mkdir()
    monkeypatch.setattr(sys, "executable", str(instead))
    monkeypatch.setattr(temporary, "SILENCE_S", 0.3)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with pytest.raises(InternalError, match="did not start: ") as caught, temporary.daemon():
        pytest.fail("it is not there")
    assert str(caught.value).endswith(told)
    assert list(place.iterdir()) == []
