"""Versions: what is in use is always whole, and the way back leads to what was in use before."""

import threading
from pathlib import Path

import pytest

from jetsel.base.errors import CalibrationError
from jetsel.base.files import write
from jetsel.base.versions import NONE, Versions, publish, withdraw, working_folder
from tests.unit.base.conftest import Fault


def check(directory: Path) -> None:
    if (directory / "what").read_text() == "damaged":
        raise CalibrationError("damaged")


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path / "deeper" / "animals", CalibrationError)


def install(versions: Versions, what: str) -> int:
    def make(directory: Path) -> None:
        write(directory / "what", what.encode())
        check(directory)

    return versions.install(make)


def used(versions: Versions) -> str | None:
    number = versions.current()
    return None if number == NONE else (versions.path(number) / "what").read_text()


def test_the_way_back_leads_to_what_was_in_use_before_and_then_to_none(versions: Versions) -> None:
    assert (versions.current(), versions.numbers()) == (NONE, [])
    assert [install(versions, what) for what in ("April", "May", "June")] == [1, 2, 3]
    assert used(versions) == "June"
    versions.use(versions.before(), check)
    assert used(versions) == "May"
    install(versions, "July")  # number 4, while 2 was in use: 3 was left for a reason
    for expected in (2, 1, NONE):
        assert versions.before() == expected
        versions.use(expected, check)
    assert used(versions) is None
    assert versions.numbers() == [1, 2, 3, 4], "nothing was deleted"


def test_what_is_damaged_is_neither_installed_nor_gone_back_to(versions: Versions) -> None:
    install(versions, "May")
    with pytest.raises(CalibrationError, match="damaged"):
        install(versions, "damaged")
    (versions.path(1) / "what").write_text("damaged")
    with pytest.raises(CalibrationError, match="damaged"):
        versions.use(1, check)
    assert install(versions, "June") == 2
    with pytest.raises(CalibrationError, match="damaged"):
        versions.use(1, check)
    assert used(versions) == "June"


@pytest.mark.parametrize(("target", "said"), [("../../elsewhere", "not to a version"), (None, "remove it")])
def test_a_link_that_is_none_of_ours_is_not_followed(versions: Versions, target: str | None, said: str) -> None:
    install(versions, "May")
    link = versions.folder / "current"
    link.unlink()
    if target is None:
        link.mkdir()
    else:
        link.symlink_to(target)
    with pytest.raises(CalibrationError, match=said):
        versions.current()


def test_the_last_ten_are_kept_and_the_one_that_would_be_gone_back_to(versions: Versions) -> None:
    for number in range(1, 13):
        install(versions, str(number))
    assert versions.numbers() == list(range(3, 13))
    versions.use(3, check)
    install(versions, "13")
    install(versions, "14")
    assert versions.numbers() == list(range(5, 15))
    versions.use(5, check)
    install(versions, "15")
    assert versions.numbers() == list(range(5, 16)), "5 is the way back from 15"
    (versions.path(15) / "before").write_bytes(b"nonsense")
    assert versions.before() == 14, "the next lower one, where what was before is not known"


def test_what_a_killed_installer_left_is_cleared_and_never_used(versions: Versions) -> None:
    install(versions, "May")
    for left in (".jetsel-new", ".jetsel-old-7"):
        (versions.folder / left).mkdir()
        (versions.folder / left / "what").write_text("half")
    (versions.folder / ".jetsel-link").symlink_to("7")
    assert (versions.numbers(), used(versions)) == ([1], "May")
    assert install(versions, "June") == 2
    assert sorted(entry.name for entry in versions.folder.iterdir()) == ["1", "2", "current"]


def test_a_fault_at_any_step_changes_nothing_or_installs_it_whole(versions: Versions, fault: Fault) -> None:
    install(versions, "old")
    refusals = []
    for _ in fault.at_each_step():
        try:
            install(versions, "new")
        except CalibrationError as refusal:
            refusals.append(str(refusal))
            assert used(versions) == "old"
            assert versions.numbers() == [1]
        else:
            break
    assert len(refusals) > 8
    assert all("free some space there" in refusal or "cannot be" in refusal for refusal in refusals)
    assert used(versions) == "new"
    assert sorted(entry.name for entry in versions.folder.iterdir()) == ["1", "2", "current"]


def test_a_fault_at_any_step_of_the_way_back_changes_nothing_or_leads_back(versions: Versions, fault: Fault) -> None:
    install(versions, "old")
    install(versions, "new")
    refusals = 0
    for _ in fault.at_each_step():
        try:
            versions.use(1, check)
        except CalibrationError:
            refusals += 1
            assert used(versions) == "new"
        else:
            break
    assert refusals > 3
    assert used(versions) == "old"


def test_installers_take_turns_and_a_reader_always_finds_a_whole_one(versions: Versions) -> None:
    install(versions, "0")
    faults: list[BaseException] = []

    def keep_installing() -> None:
        try:
            for number in range(15):
                install(versions, str(number))
        except BaseException as error:
            faults.append(error)

    installers = [threading.Thread(target=keep_installing) for _ in range(2)]
    for installer in installers:
        installer.start()
    while any(installer.is_alive() for installer in installers):
        assert versions.current() in range(1, 32)
    assert not faults
    assert versions.numbers() == list(range(22, 32))


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
