"""What is remembered survives as it was; where it is lost, a new series of usage begins."""

from __future__ import annotations

from pathlib import Path

from jetsel.addons.fleet.agent.remembered import OnTrial, Remembered, read, write


def test_it_is_read_as_it_was_written_and_damage_begins_a_new_series(tmp_path: Path) -> None:
    file = tmp_path / "remembered.json"
    first, second = read(file), read(file)
    assert first.series != second.series
    known = Remembered(series="ab", sequence=3, judged={"ab": 2}, on_trial=OnTrial(serial=3, before=1, canary={}))
    write(file, known)
    assert read(file) == known
    file.write_bytes(file.read_bytes()[:-9])
    assert (read(file).sequence, read(file).judged) == (0, {})
