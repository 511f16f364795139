"""Files that belong together: a reader of records sees all of them or none, whenever a writer fails."""

from __future__ import annotations

from pathlib import Path

from jetsel.base.versions import publish, withdraw, working_folder
from tests.unit.base.conftest import Fault


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def is_named_in(folder: Path) -> object:
    """A record of these tests is a file *.json that holds the names of its other files."""
    return lambda name: any(name in record.read_text().split() for record in folder.glob("*.json"))


def put(folder: Path, record: str, **others: str) -> None:
    with working_folder(folder, is_named_in(folder)) as work:
        for name, content in others.items():
            (work / name).write_text(content)
        (work / record).write_text(" ".join(others))
        publish(work, [*others, record])


def remove(folder: Path, record: str) -> None:
    with working_folder(folder, is_named_in(folder)) as work:
        others = (folder / record).read_text().split()
        withdraw(work, record, others)


def test_a_fault_at_any_step_leaves_no_half(tmp_path: Path, fault: Fault) -> None:
    put(tmp_path, "a.json", weights="1")
    failed = 0
    for _ in fault.at_each_step():
        try:
            put(tmp_path, "b.json", more="2", labels="3")
        except OSError:
            failed += 1
            left, fault.left = fault.left, 0
            if (tmp_path / "b.json").exists():
                assert {"more", "labels"} <= set(names(tmp_path))
                remove(tmp_path, "b.json")
            else:
                with working_folder(tmp_path, is_named_in(tmp_path)):
                    pass
            assert names(tmp_path) == ["a.json", "weights"]
            fault.left = left
        else:
            break
    assert failed > 8
    assert names(tmp_path) == ["a.json", "b.json", "labels", "more", "weights"]


def test_no_record_speaks_of_another_file_than_the_one_beside_it(tmp_path: Path, fault: Fault) -> None:
    put(tmp_path, "a.json", plan="old")
    for _ in fault.at_each_step():
        try:
            put(tmp_path, "a.json", plan="new")
        except OSError:
            if (tmp_path / "a.json").exists():
                assert (tmp_path / "plan").read_text() in ("old", "new")
        else:
            break
    assert (tmp_path / "plan").read_text() == "new"
